package observe

// Ready is the line that a worker prints on standard output when it takes legs, for the parent
// that started it.
type Ready struct {
	Ready bool   `json:"ready"`
	Role  string `json:"role"`
	HTTP  string `json:"http"`
	Link  string `json:"link"`
	Boot  string `json:"boot"`
	PID   int    `json:"pid"`
}

// Loading is a line that a worker with a parent prints on standard output now and then before its
// Ready: how much of its weights it has brought to the form that its kernels read, in bytes.
type Loading struct {
	Done  int64 `json:"loading"`
	Total int64 `json:"of"`
}

// About is the answer of a worker's GET /server_info: what does not change while it lives.
type About struct {
	Model         string `json:"model"`
	Boot          string `json:"boot"`
	Role          string `json:"role"`
	Name          string `json:"worker"`
	Link          string `json:"link,omitempty"`
	Manifest      string `json:"manifest"` // digest: equal on workers that can be paired
	MaxModelLen   int    `json:"max_model_len"`
	Vocab         int    `json:"vocab"`
	Blocks        int    `json:"blocks"`
	BlockTokens   int    `json:"block_tokens"`
	MaxRunning    int    `json:"max_running"`
	MaxQueued     int    `json:"max_queued"`
	ChunkTokens   int    `json:"chunk_tokens"`
	AheadTokens   int    `json:"ahead_tokens"`
	KV            string `json:"kv"`
	ChoicesMax    int    `json:"choices_max"` // most of n
	Deterministic bool   `json:"deterministic"`
	PID           int    `json:"pid"`
}
