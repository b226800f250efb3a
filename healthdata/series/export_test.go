package series

// Merge returns what merge does, for tests and benchmarks.
func Merge(dst, old, in *Block) Outcome {
	var o Outcome
	merge(dst, old, in, &o)
	return o
}
