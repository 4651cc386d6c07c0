"""What people do while an assistant speaks: which of it stops the answer, and how soon."""
