package sample

// Uniform returns a number in [0,1) that depends on nothing but its arguments: the random number
// for the token at position (from 0) of a request's choice. It is Philox4x32-10 (Salmon, Moraes,
// Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC11) with
//
//	key     = low, high half of seed
//	counter = position, choice, 0, 0
//
// and of the first 64 bits of its output (first word low) the upper 53, times 2^-53. Philox
// passes the statistical tests on counters that count, which a plain hash need not.
func Uniform(seed uint64, choice, position uint32) float64 {
	out := philox([4]uint32{position, choice, 0, 0}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	return float64((uint64(out[1])<<32|uint64(out[0]))>>11) * 0x1p-53
}

// philox is one block of Philox4x32 with ten rounds.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for round := 0; round < 10; round++ {
		if round > 0 {
			k[0] += 0x9e3779b9
			k[1] += 0xbb67ae85
		}
		a, b := uint64(c[0])*0xd2511f53, uint64(c[2])*0xcd9e8d57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ k[0], uint32(b), uint32(a>>32) ^ c[3] ^ k[1], uint32(a)}
	}
	return c
}
