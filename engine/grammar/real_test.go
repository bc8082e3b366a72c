package grammar_test

import (
	"baton/engine/grammar"
	"baton/proof/realmodel"
)

func init() { grammar.RealModel = realmodel.SmolLM2 }
