package value

import (
	cryptorand "crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// Random implements Python's random.Random: the same seed gives the same numbers, on every host and in every version,
// so that the random minute of a cron job, seeded by the host's name, never changes. It is a Mersenne Twister, which is
// not suitable for secrets.
type Random struct {
	state [twisterSize]uint32
	next  int
}

const (
	twisterSize  = 624
	twisterShift = 397
)

// NewRandom returns a generator with a seed, an int or a string; nil draws a seed.
func NewRandom(seed any) (*Random, error) {
	var n *big.Int
	switch seed := seed.(type) {
	case nil:
		var drawn [32]byte
		_, _ = cryptorand.Read(drawn[:]) // never fails
		n = new(big.Int).SetBytes(drawn[:])
	case bool, int, *big.Int:
		whole, _ := asBig(seed)
		n = new(big.Int).Abs(whole)
	case string:
		sum := sha512.Sum512([]byte(seed))
		n = new(big.Int).SetBytes(append([]byte(seed), sum[:]...))
	default:
		return nil, typeError("a seed is an int or a string, not a %s", TypeName(seed))
	}
	r := &Random{}
	r.seedBy(words(n))
	return r, nil
}

// words returns the 32-bit digits of a number, the lowest first; 0 has one.
func words(n *big.Int) []uint32 {
	buf := n.Bytes()
	padded := make([]byte, max(4, (len(buf)+3)/4*4))
	copy(padded[len(padded)-len(buf):], buf)
	list := make([]uint32, 0, len(padded)/4)
	for end := len(padded); end > 0; end -= 4 {
		list = append(list, binary.BigEndian.Uint32(padded[end-4:]))
	}
	return list
}

// seedBy implements init_by_array of the generator's reference implementation.
func (r *Random) seedBy(key []uint32) {
	r.state[0] = 19650218
	for i := uint32(1); i < twisterSize; i++ {
		r.state[i] = 1812433253*(r.state[i-1]^r.state[i-1]>>30) + i
	}
	i, j := 1, 0
	for range max(twisterSize, len(key)) {
		r.mix(i, 1664525, key[j]+uint32(j))
		i = r.step(i)
		j = (j + 1) % len(key)
	}
	for range twisterSize - 1 {
		r.mix(i, 1566083941, -uint32(i))
		i = r.step(i)
	}
	r.state[0] = 1 << 31
	r.next = twisterSize
}

func (r *Random) mix(i int, factor, add uint32) {
	before := r.state[i-1]
	r.state[i] = (r.state[i] ^ (before^before>>30)*factor) + add
}

func (r *Random) step(i int) int {
	if i++; i >= twisterSize {
		r.state[0] = r.state[twisterSize-1]
		return 1
	}
	return i
}

func (r *Random) word() uint32 {
	if r.next >= twisterSize {
		r.twist()
	}
	y := r.state[r.next]
	r.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (r *Random) twist() {
	for i := range twisterSize {
		y := r.state[i]&(1<<31) | r.state[(i+1)%twisterSize]&(1<<31-1)
		r.state[i] = r.state[(i+twisterShift)%twisterSize] ^ y>>1
		if y&1 != 0 {
			r.state[i] ^= 0x9908b0df
		}
	}
	r.next = 0
}

// bits draws a number of n bits, at most 64.
func (r *Random) bits(n int) uint64 {
	low := uint64(r.word() >> (32 - min(n, 32)))
	if n <= 32 {
		return low
	}
	return uint64(r.word()>>(64-n))<<32 | low
}

// Below draws a number from 0 up to, but not including, n, which is positive.
func (r *Random) Below(n int) int {
	size := bits.Len(uint(n))
	for {
		if drawn := r.bits(size); drawn < uint64(n) {
			return int(drawn)
		}
	}
}

// Between draws a number from low to high, both included, as Python's randint does.
func (r *Random) Between(low, high int) (int, error) {
	if high < low || high-low < 0 || high-low == math.MaxInt {
		return 0, valueError("empty range for randrange() (%d, %d, %d)", low, high+1, high+1-low)
	}
	return low + r.Below(high-low+1), nil
}

// Sample draws k items of a list, each at most once.
func (r *Random) Sample(items []any, k int) ([]any, error) {
	n := len(items)
	if k < 0 || k > n {
		return nil, valueError("Sample larger than population or is negative")
	}
	if n > r.poolLimit(k) {
		return r.sampleFew(items, k), nil
	}
	drawn := make([]any, k)
	pool := append([]any{}, items...)
	for i := range drawn {
		j := r.Below(n - i)
		drawn[i], pool[j] = pool[j], pool[n-i-1]
	}
	return drawn, nil
}

// sampleFew draws items without copying all of them: it repeats draws of items that were drawn already.
func (r *Random) sampleFew(items []any, k int) []any {
	drawn, taken := make([]any, k), make(map[int]bool, k)
	for i := range drawn {
		j := r.Below(len(items))
		for taken[j] {
			j = r.Below(len(items))
		}
		taken[j] = true
		drawn[i] = items[j]
	}
	return drawn
}

// poolLimit returns the length up to which Python copies the list, since copying changes the drawn items.
func (*Random) poolLimit(k int) int {
	if k <= 5 {
		return 21
	}
	return 21 + int(math.Pow(4, math.Ceil(math.Log(float64(k*3))/math.Log(4))))
}
