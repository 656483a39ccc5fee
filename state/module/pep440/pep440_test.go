package pep440

import (
	"testing"
)

// TestVersions checks the order of versions in PEP 440.
func TestVersions(t *testing.T) {
	order := []string{"1.dev1", "1.0a1.dev2", "1.0a1", "1.0a2", "1.0b1", "1.0rc1", "1.0", "1.0.post1.dev1", "1.0.post1",
		"1.0.1", "1.1", "1.10", "2", "1!0.1"}
	for i, a := range order {
		va, ok := parseVersion(a)
		if !ok {
			t.Fatalf("%s is not a version", a)
		}
		for j, b := range order {
			vb, _ := parseVersion(b)
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := va.compare(vb); got != want {
				t.Errorf("%s against %s is %d, want %d", a, b, got, want)
			}
		}
	}
	for _, same := range [][2]string{{"1.0", "1"}, {"1.0-alpha.1", "1a1"}, {"v1.0", "1"},
		{"1.0-1", "1.post1"}, {"1.0c1", "1.0rc1"}} {
		a, _ := parseVersion(same[0])
		b, _ := parseVersion(same[1])
		if a.compare(b) != 0 {
			t.Errorf("%s and %s are equal, but they are different versions", same[0], same[1])
		}
	}
	if _, ok := parseVersion("latest"); ok {
		t.Error("latest is accepted as a version")
	}
}

func TestRequirements(t *testing.T) {
	for _, c := range []struct {
		text, name, installed string
		met                   bool
	}{
		{"Django", "django", "3.2", true},
		{"django>=3,<4", "django", "3.2.1", true},
		{"django>=3,<4", "django", "4.0", false},
		{"django == 3.2", "django", "3.2.0", true},
		{"django==3.*", "django", "3.9", true},
		{"django==3.*", "django", "30.9", false},
		{"django!=3.2", "django", "3.2", false},
		{"django~=3.2", "django", "3.9", true},
		{"django~=3.2.1", "django", "3.3", false},
		{"django[argon2]<4", "django", "3", true},
		{"zope.interface (>5)", "zope-interface", "5.1", true},
		{"a===1.0", "a", "1", false},
		{"a==1.0", "a", "1.0+local", true},
		{"a==1.0+x", "a", "1.0+local", false},
		{"git+https://example.org/x.git#egg=My_Thing", "my-thing", "1", true},
		{"thing @ https://example.org/thing.whl", "thing", "1", true},
		{"./dist/thing.whl", "", "1", true},
		{"https://example.org/thing.whl", "", "1", true},
	} {
		r := ParseRequirement(c.text)
		if r.Name != c.name {
			t.Errorf("%s is a requirement of %q, want %q", c.text, r.Name, c.name)
		}
		if got := r.Met(c.installed); got != c.met {
			t.Errorf("%s is met by %s: %v", c.text, c.installed, got)
		}
	}
}

// FuzzRequirements checks that the parser does not panic.
func FuzzRequirements(f *testing.F) {
	f.Add("django[x]>=3,<4 ; python_version<'3'", "3.2.post1.dev2+x")
	f.Add("~=", "1!2")
	f.Fuzz(func(t *testing.T, text, installed string) {
		r := ParseRequirement(text)
		if r.Plain && r.Name == "" {
			t.Errorf("%q has no name", text)
		}
		r.Met(installed)
		if v, ok := parseVersion(installed); ok && v.compare(v) != 0 {
			t.Errorf("%q does not satisfy == with itself", installed)
		}
	})
}
