package kernel

// ExpSum writes exp(x[i]-peak) into dst, which may be x, and returns their sum. peak is at least the
// largest element.
func ExpSum(dst, x []float32, peak float32) float32 {
	sameLen("ExpSum", len(dst), len(x))
	if len(x) == 0 {
		return 0
	}
	return active.expSum(dst, x, peak)
}
