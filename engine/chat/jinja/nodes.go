package jinja

// expr is an expression of a template.
type expr interface {
	eval(r *run) (Value, error)
}

// stmt is a statement, or text, of a template.
type stmt interface {
	exec(r *run) (signal, error)
}

// signal is how a statement ended.
type signal uint8

const (
	goOn signal = iota
	breaks
	continues
)

type (
	constant  struct{ v Value }
	name      struct{ name string }
	attribute struct {
		of   expr
		name string
	}
	item  struct{ of, key expr }
	slice struct{ of, from, to, step expr } // the last three may be nil
	args  struct {
		pos      []expr
		kw       []keywordExpr
		more, kv expr // *args and **kwargs, or nil
	}
	keywordExpr struct {
		name  string
		value expr
	}
	call struct {
		f expr
		args
	}
	filtered struct {
		of   expr // nil in a filter block
		f    filter
		name string
		args
	}
	tested struct {
		of   expr
		f    test
		name string
		args
	}
	not    struct{ x expr }
	sign   struct{ x expr } // minus; plus needs no node of its own but its check
	plus   struct{ x expr }
	binary struct {
		op   string
		a, b expr
	}
	compare struct {
		a   expr
		ops []string
		xs  []expr
	}
	and  struct{ a, b expr }
	or   struct{ a, b expr }
	cond struct{ test, yes, no expr } // no may be nil
	join struct{ xs []expr }          // ~
	list struct {
		items []expr
		tuple bool
	}
	dict struct{ keys, values []expr }
)

type (
	data   struct{ text Text }
	output struct {
		x    expr
		line int
	}
	branch struct {
		test expr // nil: else
		body []stmt
		line int
	}
	ifs  struct{ branches []branch }
	loop struct {
		targets   []string // one, or those of a tuple
		tuple     bool
		in, where expr // where may be nil
		recursive bool
		body      []stmt
		otherwise []stmt
		line      int
	}
	set struct {
		targets []target
		tuple   bool
		value   expr
		line    int
	}
	setBlock struct {
		target  target
		filters []filtered
		body    []stmt
		line    int
	}
	// target is a name, or an attribute of a namespace.
	target struct{ name, attr string }
	macro  struct {
		name     string
		params   []string
		defaults []expr // of the last params
		body     []stmt
		varargs  bool // the body names these
		kwargs   bool
		caller   bool
	}
	define    struct{ *macro }
	callBlock struct {
		f    call
		body *macro
		line int
	}
	filterBlock struct {
		filters []filtered
		body    []stmt
		line    int
	}
	with struct {
		names  []string
		values []expr
		body   []stmt
		line   int
	}
	block struct{ body []stmt } // generation, block, autoescape: the body alone, in a scope of its own
	jump  struct{ s signal }
)
