"""Every primary with every secondary loss: Table 2 of Karandikar et al., NeurIPS 2021. Values."""

from ..._study import Claim, Column, Study, published
from ._protocol import ARMS, BUDGETS, NOTE, PAPER, PRIMARY, RULE

CIFAR_100_TABLE_2 = published("""
    NLL             | 78.7 0.122 | 9.10 0.139 | 5.36 0.091 | 4.69 0.069
    NLL + MMCE      | 77.2 0.072 | 4.77 0.121 | 4.06 0.138 | 4.11 0.173
    NLL + AvUC      | 76.2 0.146 | 11.4 0.175 | 4.40 0.190 | 7.64 0.187
    NLL + AvUC-GS   | 78.3 0.126 | 6.21 0.084 | 8.36 0.166 | 5.40 0.241
    NLL + S-AvUC    | 78.6 0.079 | 6.10 0.095 | 9.13 0.085 | 5.88 0.243
    NLL + SB-ECE    | 77.7 0.167 | 6.86 0.839 | 3.18 0.093 | 3.51 0.314
    Focal           | 78.3 0.086 | 4.66 0.130 | 6.47 0.140 | 4.84 0.115
    Focal + MMCE    | 77.3 0.104 | 5.07 0.147 | 3.58 0.098 | 2.82 0.110
    Focal + AvUC    | 77.7 0.145 | 5.68 0.181 | 5.87 0.182 | 3.93 0.209
    Focal + AvUC-GS | 78.1 0.056 | 3.38 0.109 | 4.89 0.118 | 2.91 0.122
    Focal + S-AvUC  | 78.1 0.084 | 1.57 0.122 | 4.15 0.090 | 2.89 0.077
    Focal + SB-ECE  | 78.6 0.062 | 2.30 0.105 | 5.16 0.108 | 4.10 0.095
    MSE             | 77.9 0.089 | 4.17 0.122 | 5.22 0.126 | 4.79 0.281
    MSE + MMCE      | 78.0 0.071 | 4.22 0.085 | 5.06 0.108 | 4.90 0.111
    MSE + AvUC      | 77.6 0.134 | 4.27 0.067 | 5.29 0.125 | 4.42 0.224
    MSE + AvUC-GS   | 77.8 0.041 | 4.31 0.114 | 5.03 0.091 | 4.15 0.135
    MSE + S-AvUC    | 77.6 0.104 | 3.69 0.122 | 4.60 0.144 | 4.26 0.322
    MSE + SB-ECE    | 77.9 0.071 | 4.14 0.100 | 5.00 0.092 | 4.27 0.184
""")
CIFAR_10_TABLE_2 = published("""
    NLL             | 95.5 0.040 | 5.59 0.119 | 1.95 0.127 | 1.16 0.106
    NLL + MMCE      | 95.0 0.031 | 1.55 0.053 | 1.09 0.098 | 1.45 0.114
    NLL + AvUC      | 95.5 0.053 | 5.27 0.101 | 2.39 0.110 | 1.30 0.106
    NLL + AvUC-GS   | 95.6 0.036 | 4.94 0.109 | 2.07 0.129 | 1.31 0.072
    NLL + S-AvUC    | 95.4 0.027 | 5.87 0.113 | 2.24 0.130 | 1.20 0.115
    NLL + SB-ECE    | 95.4 0.043 | 5.84 0.121 | 2.28 0.091 | 1.27 0.139
    Focal           | 95.0 0.085 | 5.45 0.079 | 2.69 0.190 | 1.77 0.115
    Focal + MMCE    | 95.1 0.068 | 8.74 0.059 | 3.13 0.110 | 2.16 0.210
    Focal + AvUC    | 94.1 0.128 | 1.34 0.084 | 2.53 0.124 | 1.12 0.133
    Focal + AvUC-GS | 95.2 0.063 | 1.39 0.081 | 2.30 0.125 | 1.46 0.108
    Focal + S-AvUC  | 94.4 0.145 | 1.58 0.146 | 1.34 0.172 | 1.05 0.197
    Focal + SB-ECE  | 95.1 0.056 | 1.19 0.088 | 2.08 0.143 | 1.38 0.187
    MSE             | 95.0 0.041 | 6.58 0.034 | 5.33 0.122 | 4.43 0.106
    MSE + MMCE      | 95.1 0.034 | 2.82 0.046 | 3.23 0.137 | 2.34 0.141
    MSE + AvUC      | 94.8 0.050 | 3.64 0.066 | 4.72 0.139 | 4.01 0.178
    MSE + AvUC-GS   | 94.8 0.031 | 5.44 0.146 | 5.56 0.151 | 5.20 0.173
    MSE + S-AvUC    | 92.0 0.117 | 3.40 0.126 | 1.87 0.080 | 1.50 0.134
    MSE + SB-ECE    | 95.1 0.056 | 4.37 0.143 | 5.08 0.159 | 4.26 0.136
""")
IMAGENET_TABLE_2 = published("""
    NLL           | 75.8 0.036 | 3.81 0.043 | 2.17 0.045 | 3.32 0.043
    NLL + MMCE    | 75.2 0.048 | 3.12 0.025 | 2.18 0.029 | 2.68 0.022
    NLL + AvUC    | 75.9 0.035 | 3.48 0.041 | 3.37 0.037 | 3.18 0.036
    NLL + AvUC-GS | 75.8 0.035 | 3.84 0.030 | 3.15 0.028 | 3.44 0.034
    NLL + S-AvUC  | 75.6 0.053 | 2.26 0.055 | 2.02 0.041 | 1.92 0.046
    NLL + SB-ECE  | 74.7 0.028 | 3.11 0.039 | 1.92 0.024 | 2.62 0.039
""")
TABLE_2 = Study(
    title="Every primary with every secondary loss",
    paper=PAPER,
    place="Table 2",
    arms=ARMS,
    columns={
        "Accuracy": Column("accuracy"),
        "ECE": Column("ece15_mass_l2"),
        "ECE+TS": Column("ece15_mass_l2", after="temperature"),
        "ECE+TS-SB-ECE": Column("ece15_mass_l2", after="temperature_sb_ece"),
    },
    spread="sem",
    rule=RULE,
    note=(
        f"{NOTE} The paper counts 35 of its 42 lines in which TS-SB-ECE is below TS; as they are "
        "printed there are 34."
    ),
    claims=(
        *(
            Claim("ECE", f"{fit} + {name}", fit)
            for fit in PRIMARY
            for name in ("MMCE", "AvUC-GS", "S-AvUC", "SB-ECE")
        ),
        *(Claim("ECE+TS-SB-ECE", arm, arm, against="ECE+TS") for arm in ARMS),
    ),
    budgets=BUDGETS,
    published={
        "cifar100": CIFAR_100_TABLE_2,
        "cifar10": CIFAR_10_TABLE_2,
        "imagenet": IMAGENET_TABLE_2,
    },
)
