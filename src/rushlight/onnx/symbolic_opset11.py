"""How operators are exported to ONNX's operator set 11: nothing is exported, so nothing stands here."""
