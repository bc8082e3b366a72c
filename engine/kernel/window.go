package kernel

import "math"

// firstToken returns the first token that column c attends to.
func (g *chunkGroup) firstToken(c int) int {
	if g.p.Window == 0 {
		return 0
	}
	return max(0, g.pos+c/g.share+1-g.p.Window)
}

// outOfWindow is the score of a token that is not seen but shares a page with one that is: so low that no exponential
// is left of it, and finite, as every kernel wants it.
const outOfWindow = -1e30

// probabilities turns the scores of column c0+j, one of n, in pages [first,pages) into exp(s-max), zero for tokens
// that the column does not see, and returns their sum. What is added, and in which order, depends on the column
// alone, not on the other columns that first was chosen for (K1): whole pages in front of the window are left out.
func (g *chunkGroup) probabilities(c0, j, n, first, pages int) float32 {
	softmax := active.softmaxPage[g.p.Layout.Type]
	tokens, from := g.pos+(c0+j)/g.share+1, g.firstToken(c0+j)
	if cap := g.p.SoftCap; cap != 0 {
		for t := from; t < tokens; t++ {
			x := &line(&g.s.s[0], t/PageTokens*n+j)[t%PageTokens]
			*x = cap * float32(math.Tanh(float64(*x/cap)))
		}
	}
	own := from / PageTokens
	unseen := line(&g.s.s[0], own*n+j)[:from%PageTokens]
	for i := range unseen {
		unseen[i] = outOfWindow
	}
	// What is left of unseen, at most the smallest normal number, is below the last bit of everything that it is added to.
	sum := softmax(&g.s.s[(own*n+j)*16], n*64, pages-own, tokens-own*PageTokens)
	for p := first; p < own; p++ {
		*line(&g.s.s[0], p*n+j) = [16]float32{}
	}
	return sum
}
