package blocks

// Count says where the blocks of a pool are. Total = Free + Cached + Held + Quarantined.
type Count struct {
	Total, Free, Cached, Held, Quarantined int
}
