"""Maps of logits that repair a trained model."""
