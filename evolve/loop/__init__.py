"""One run: observe failures, have a candidate proposed, put it through the gate, commit what is proved better."""
