package spn

// SetBranchTerms bounds the terms of a branch until the returned function is called.
func SetBranchTerms(n int) (restore func()) {
	old := branchTerms
	branchTerms = n
	return func() { branchTerms = old }
}
