"""The parts of a spoken conversation beside speech itself: hearing turns, words and answers."""
