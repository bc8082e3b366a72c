package kernel

func archTables() []*table { return nil }
func pause()               {}
