package model

// Bench measures.
func Bench(m *Model, test string, threads int) (tokensPerSecond float64) { panic("not yet") }
