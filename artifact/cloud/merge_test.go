package cloud_test

import (
	"crypto/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
)

func TestDiffShowsWhatIsSigned(t *testing.T) {
	before := sample(t)
	after := clone(t, before)
	g := after.Guests["web1"]
	g.Size, g.Names = "8GiB", []string{"www.example.com"}
	after.Guests["web1"] = g
	delete(after.Nodes, "n2")
	after.Images["trixie"] = cloud.Image{Project: "image-trixie", Version: "2", Digest: before.Images["bookworm"].Digest}
	changes, err := cloud.Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	text := cloud.Text(changes)
	for _, want := range []string{"~ guest web1\n    names: www.example.com\n    size: 5GiB -> 8GiB\n",
		"+ image trixie\n    project: image-trixie\n", "- node n2\n    mode: prod ->\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the diff lacks\n%s\nin\n%s", want, text)
		}
	}
	if none, err := cloud.Diff(before, clone(t, before)); err != nil || len(none) > 0 {
		t.Errorf("a cloud differs from itself in %v (%v)", none, err)
	}
}

func TestTwoGuestsOfTwoPeopleGetDifferentAddresses(t *testing.T) {
	base := sample(t)
	mine, theirs := clone(t, base), clone(t, base)
	mine.Guests["a"], theirs.Guests["b"] = guest("n2"), guest("n2")
	allocate(t, mine)
	allocate(t, theirs)
	if mine.Guests["a"].Address4 != theirs.Guests["b"].Address4 || mine.Guests["a"].SSHPort != theirs.Guests["b"].SSHPort {
		t.Fatal("the two edits do not conflict")
	}
	joined, err := cloud.Merge(base, mine, theirs)
	if err != nil {
		t.Fatal(err)
	}
	allocate(t, joined) // fails if two guests have the same
	if !reflect.DeepEqual(joined.Guests["b"], theirs.Guests["b"]) {
		t.Errorf("the published guest became %+v", joined.Guests["b"])
	}
	if joined.Guests["a"].ID != mine.Guests["a"].ID {
		t.Errorf("the new guest has another ID: %+v", joined.Guests["a"])
	}
}

func TestEditsOfDifferentFieldsAreJoined(t *testing.T) {
	base := sample(t)
	mine, theirs := clone(t, base), clone(t, base)
	edit := func(c *cloud.Cloud, change func(*cloud.Guest)) {
		g := c.Guests["web1"]
		change(&g)
		c.Guests["web1"] = g
	}
	edit(base, func(g *cloud.Guest) { g.Names = []string{"old.example.com", "kept.example.com"} })
	edit(mine, func(g *cloud.Guest) { g.Size, g.Names = "8GiB", []string{"kept.example.com", "mine.example.com"} })
	edit(theirs, func(g *cloud.Guest) {
		g.SSHKeys = append(g.SSHKeys, sshKey("bob"))
		g.Names = []string{"old.example.com", "kept.example.com", "theirs.example.com"}
	})
	joined, err := cloud.Merge(base, mine, theirs)
	if err != nil {
		t.Fatal(err)
	}
	g := joined.Guests["web1"]
	if want := []string{"kept.example.com", "theirs.example.com", "mine.example.com"}; g.Size != "8GiB" ||
		len(g.SSHKeys) != 2 || !reflect.DeepEqual(g.Names, want) {
		t.Errorf("the joined guest is %+v", g)
	}
}

func TestConflictsAreRefusedAllAtOnce(t *testing.T) {
	base := sample(t)
	mine, theirs := clone(t, base), clone(t, base)
	set := func(c *cloud.Cloud, size string) {
		g := c.Guests["web1"]
		g.Size = size
		c.Guests["web1"] = g
	}
	set(mine, "8GiB")
	set(theirs, "9GiB")
	delete(mine.Nodes, "n2")
	n := theirs.Nodes["n2"]
	n.Slots = 7
	theirs.Nodes["n2"] = n
	mine.Guests["both"], theirs.Guests["both"] = guest("n1"), guest("n2")
	_, err := cloud.Merge(base, mine, theirs)
	for _, want := range []string{"guest web1: size is 8GiB in your edit, and 9GiB in that of another person",
		"you removed node n2, and another person changed it", "both added guest both"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// FuzzParse checks that invalid input is refused without a panic, and that valid input is parsed to the same values as
// its output.
func FuzzParse(f *testing.F) {
	good, err := sample(f).Bytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, text := range []string{"", "form: 1\n", "form: 1\nguests: {a: *x}\n", "a: &a [*a]\n", "form: !!binary x\n",
		"form: 1\nguests: [1]\n", "? {a: b}\n: c\n", "form: 1\n<<: {form: 2}\n", "form: 1\nnodes: {on: {mode: prod}}\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := cloud.Parse("cloud.yaml", data)
		if err != nil {
			return
		}
		text, err := c.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := cloud.Parse("cloud.yaml", text)
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("%q is written as\n%s\nand read as %+v (%v), not %+v", data, text, again, err, c)
		}
		if err := c.Allocate(rand.Reader); err == nil && c.Check() != nil {
			t.Fatalf("%q is not good after Allocate: %v", data, c.Check())
		}
		if joined, err := cloud.Merge(c, c, again); err != nil || !reflect.DeepEqual(joined.Guests, c.Guests) {
			t.Fatalf("merging a cloud with itself: %v", err)
		}
	})
}
