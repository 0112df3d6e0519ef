"""What benches/attacks.py is made of."""
