package order

import "testing"

// TestOrders checks cases of three orders. TestFamilies in state/module/pkg compares thousands of others with the
// package managers.
func TestOrders(t *testing.T) {
	for _, c := range []struct {
		family  string
		compare func(a, b string) int
		cases   [][2]string // the older first
		same    [][2]string
	}{
		{
			"rpm", RPM,
			[][2]string{
				{"1.0", "2.0"}, {"1.0-1", "1.0-2"}, {"1.9", "1.10"}, {"1.0~rc1", "1.0"}, {"1.0~rc1-9", "1.0-1"},
				{"1.0", "1.0^git1"}, {"1.0^git1", "1.0.1"}, {"1.0a", "1.0.1"}, {"a", "1"}, {"9-9", "1:1-1"}, {"1:2", "2:1"},
				{"1.0", "1.0a"}, {"1.fc39", "1.fc40"}, {"20240101", "20240102"}, {"1.0~~", "1.0~"}, {"1", "1.1"},
				{"2.6.32-9", "2.6.32-10"}, {"5.5p1", "5.5p10"}, {"1.0~a", "1.0~b"},
			},
			[][2]string{
				{"1.0", "1.0"}, {"1.0", "0:1.0"}, {"1.0", "1.0-7"}, {"1.0", "1_0"}, {"1.01", "1.1"}, {"1..0", "1.0"},
				{"2.0.", "2.0"},
			},
		},
		{
			"pacman", Pacman,
			[][2]string{
				{"1.0", "2.0"}, {"1.0-1", "1.0-2"}, {"1.0a", "1.0b"}, {"1.0beta", "1.0"}, {"1.0rc", "1.0"}, {"1.0", "1.0.a"},
				{"1.0.a", "1.0.1"},
				{"1.5", "1.5.1"}, {"1.5.b", "1.5.1"}, {"9", "1:1"}, {"1.0", "1.0..1"}, {"1.0.0", "1.0.0.0"}, {"1.0.", "1.0.1"},
			},
			[][2]string{{"1.0", "1.0"}, {"0:1.0", "1.0"}, {"1.0", "1.0-1"}, {"1.00", "1.0"}},
		},
		{
			"apk", APK,
			[][2]string{
				{"1.0-r0", "1.0-r1"}, {"1.0-r9", "1.0-r10"}, {"1.0_rc1", "1.0"}, {"1.0", "1.0_p1"}, {"1.0_alpha", "1.0_beta"},
				{"1.0_pre1", "1.0_rc1"}, {"1.0", "1.0a"}, {"1.0a", "1.0b"}, {"1.0", "1.0.1"}, {"1.9", "1.10"}, {"1.01", "1.1"},
				{"1.0_git20230101", "1.0_git20240101"},
				{"1.0_rc1-r5", "1.0-r0"}, {"1.0", "1.0-r0"}, {"1.0_cvs1", "1.0_p1"}, {"1.0~aa", "1.0~ab"},
			},
			[][2]string{{"1.0-r0", "1.0-r0"}, {"01", "1"}},
		},
	} {
		for _, pair := range c.cases {
			older, newer := c.compare(pair[0], pair[1]), c.compare(pair[1], pair[0])
			if older != -1 || newer != 1 {
				t.Errorf("%s: %s is not older than %s: %d, %d", c.family, pair[0], pair[1], older, newer)
			}
		}
		for _, pair := range c.same {
			if c.compare(pair[0], pair[1]) != 0 || c.compare(pair[1], pair[0]) != 0 {
				t.Errorf("%s: %s and %s are not the same: %d", c.family, pair[0], pair[1], c.compare(pair[0], pair[1]))
			}
		}
	}
}

// FuzzOrders checks that swapping two versions inverts the result.
func FuzzOrders(f *testing.F) {
	for _, pair := range [][2]string{{"1.0~rc1", "1.0^1"}, {"1:1-1", "ü"}, {"1_p", "1-r"}, {"-", ":"}, {"1.", ".1"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for family, compare := range map[string]func(a, b string) int{"rpm": RPM, "pacman": Pacman, "apk": APK} {
			// the order of pacman itself is not antisymmetric for malformed versions
			if family != "pacman" && compare(a, b) != -compare(b, a) {
				t.Errorf("%s: %q and %q are %d one way and %d the other", family, a, b, compare(a, b), compare(b, a))
			}
			if compare(a, a) != 0 {
				t.Errorf("%s: %q is not the same as itself", family, a)
			}
		}
	})
}
