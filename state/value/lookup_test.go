package value_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestLookup(t *testing.T) {
	names := value.NewMap("1.5", "text")
	for key, v := range map[any]any{1: "one", 2.5: "float", nil: "nothing"} {
		if err := names.SetKey(key, v); err != nil {
			t.Fatal(err)
		}
	}
	data := value.NewMap("a", value.NewMap("b", value.NewList(value.NewMap("c", 1), 5)), "a:b", 7, "n", names)
	if err := data.SetKey(true, "yes"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a:b:c": "1", "a:b:0": "{'c': 1}", "a:b:1": "5", "a:b:-1": "5", "a:b:2": "", "a:b:x": "", "a:b:1:z": "",
		"a:b:c:d": "",
		"a:b":     "[{'c': 1}, 5]", // the steps are used, not the key with the same text
		"yes":     "'yes'", "True": "'yes'", "zz": "", "": "",
		"n:1": "'one'", "n:01": "'one'", "n:0x1": "'one'", "n: 1": "'one'", "n:1.5": "'text'", "n:2.5": "'float'",
		"n:null": "'nothing'", "n:~": "'nothing'", "n:3": "",
	} {
		got := ""
		if v, ok := value.Lookup(data, path, ":"); ok {
			got = value.Repr(v)
		}
		if got != want {
			t.Errorf("Lookup(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestFollow(t *testing.T) {
	data := value.NewMap("a", value.NewList(1, value.Tuple{2, 3}))
	if got, ok := value.Follow(data, "a", 1, 0); !ok || got != 2 {
		t.Errorf("Follow = %v, %v, want 2", got, ok)
	}
	if got, ok := value.Follow(data, "a", 1, "x"); ok {
		t.Errorf("Follow found %v after a step that is not an index", got)
	}
}
