"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  document.documentElement.classList.add("js");

  const choose = (id, members, matches) => {
    const select = document.getElementById(id);
    if (!select) return;
    const show = () => {
      for (const one of all(members)) one.classList.toggle("chosen", matches(one, select.value));
    };
    select.addEventListener("change", show);
    show();
  };
  choose("choose-model", ".model", (one, value) => value === "all" || one.dataset.model === value);
  choose("choose-bins", ".way", (one, value) => one.dataset.way === value);

  // Where a table or a drawing is wider than its box, a line says that it scrolls.
  const boxes = new ResizeObserver((seen) => {
    for (const { target } of seen) {
      const box = target.closest(".scroll");
      box.classList.toggle("wider", box.scrollWidth > box.clientWidth + 1);
    }
  });
  for (const box of all(".scroll")) for (const one of [box, ...box.children]) boxes.observe(one);

  // A title becomes a tooltip that can be reached by pointer, touch and keyboard alike.
  const tip = document.getElementById("tip");
  const spoken = document.getElementById("spoken");
  const hide = () => {
    tip.style.display = "none";
    for (const mark of all(".mark.here")) mark.classList.remove("here");
  };
  const show = (mark, x, y) => {
    hide();
    mark.classList.add("here");
    tip.textContent = mark.dataset.said;
    tip.style.display = "block";
    const room = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - room.width - 6))}px`;
    tip.style.top = `${y + room.height + 24 > innerHeight ? Math.max(6, y - room.height - 12) : y + 16}px`;
  };
  for (const mark of all(".mark")) {
    const title = mark.querySelector("title");
    mark.dataset.said = title.textContent;
    title.remove();
    mark.addEventListener("pointermove", (event) => show(mark, event.clientX, event.clientY));
    mark.addEventListener("pointerleave", hide);
  }
  for (const figure of all("svg")) {
    const marks = all(".mark", figure);
    if (!marks.length) continue;
    figure.setAttribute("tabindex", "0");
    let at = -1;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    figure.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      if (!(event.key in step)) return undefined;
      event.preventDefault();
      at = Math.max(0, Math.min(marks.length - 1, at + step[event.key]));
      const place = marks[at].getBoundingClientRect();
      show(marks[at], place.left + place.width / 2, place.top + 20);
      spoken.textContent = marks[at].dataset.said;
      return undefined;
    });
    figure.addEventListener("blur", () => { at = -1; hide(); });
  }
  addEventListener("scroll", hide, { passive: true });
})();
