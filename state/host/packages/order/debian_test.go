package order

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
)

func TestCompareDebian(t *testing.T) {
	// Each version is less than the next.
	for _, chain := range []string{
		"1.0~~ 1.0~~a 1.0~ 1.0 1.0-1+b1 1.0a 1.0+b1 1.0.1",
		"0 0.1 1 1a 1b 1+ 1. 1.1 9 10 1:0 2:0~ 2:0",
		"2.36-9+deb12u4 2.36-9+deb12u10 2.37 2.37-1 2.37.0",
		"1.2.3~rc1-1 1.2.3-1~bpo1 1.2.3-1 1.2.3-1.1 1.2.3-2",
		"99999999999999999999999 100000000000000000000000",
	} {
		versions := strings.Fields(chain)
		for i, a := range versions {
			for j, b := range versions {
				if got, want := Debian(a, b), sign(i-j); got != want {
					t.Errorf("%s <=> %s is %d, want %d", a, b, got, want)
				}
			}
		}
	}
	for _, same := range [][2]string{{"1.0", "1.0-0"}, {"0:1", "1"}, {"01.002", "1.2"}, {"1.0", " 1.0 "}, {"", "0"}} {
		if got := Debian(same[0], same[1]); got != 0 {
			t.Errorf("%q <=> %q is %d, want 0", same[0], same[1], got)
		}
	}
}

// TestCompareDebianMatchesDpkg compares the results for random, similar versions with those of dpkg.
func TestCompareDebianMatchesDpkg(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("this system has no dpkg to compare with")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 250 {
		a := randomVersion(random)
		b := mutate(random, a)
		want := 1
		if exec.Command("dpkg", "--compare-versions", a, "lt", b).Run() == nil {
			want = -1
		} else if exec.Command("dpkg", "--compare-versions", a, "eq", b).Run() == nil {
			want = 0
		}
		if got := Debian(a, b); got != want {
			t.Errorf("%s <=> %s is %d, dpkg says %d", a, b, got, want)
		}
		if got := Debian(b, a); got != -want {
			t.Errorf("%s <=> %s is %d, and the other way round %d", b, a, got, want)
		}
	}
}

const versionLetters = "0123456789012345678900aAzZ.+~~.."

func randomVersion(random *rand.Rand) string {
	var b strings.Builder
	if random.IntN(4) == 0 {
		b.WriteString([]string{"0:", "1:", "12:"}[random.IntN(3)])
	}
	b.WriteByte(byte('0' + random.IntN(10)))
	for range random.IntN(7) {
		b.WriteByte(versionLetters[random.IntN(len(versionLetters))])
	}
	if random.IntN(2) == 0 {
		b.WriteByte('-')
		for range 1 + random.IntN(4) {
			b.WriteByte(versionLetters[random.IntN(len(versionLetters))])
		}
	}
	return b.String()
}

// mutate changes or adds one character after the first digit, so that the two versions are similar.
func mutate(random *rand.Rand, v string) string {
	start := strings.IndexByte(v, ':') + 2
	i := start + random.IntN(len(v)-start+1)
	letter := string(versionLetters[random.IntN(len(versionLetters))])
	if i < len(v) && v[i] != '-' && random.IntN(2) == 0 {
		return v[:i] + letter + v[i+1:]
	}
	return v[:i] + letter + v[i:]
}

func FuzzCompareDebian(f *testing.F) {
	f.Add("1:2.3~rc1-4+b1", "2.3")
	f.Add("", "-")
	f.Add("a:b:c-d-e", "00000:~")
	f.Fuzz(func(t *testing.T, a, b string) {
		if Debian(a, b) != -Debian(b, a) {
			t.Errorf("%q and %q have no order", a, b)
		}
		if Debian(a, a) != 0 {
			t.Errorf("%q differs from itself", a)
		}
	})
}
