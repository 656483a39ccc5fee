package procedure

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestExpansionIsBounded expands nine levels of forty references each, 40^9 in total.
func TestExpansionIsBounded(t *testing.T) {
	data := value.NewMap("v9", "x")
	for i := range 9 {
		data.Set(fmt.Sprint("v", i), strings.Repeat(fmt.Sprintf("{v%d}", i+1), 40))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Layers{Sample: value.NewMap("data", data)}.Merge()
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "cfg:data:v") || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("%v, want a refusal that names the key", err)
	}
	if cost := after.TotalAlloc - before.TotalAlloc; cost > 256<<20 {
		t.Errorf("%d bytes were allocated", cost)
	}
}

// TestExpansionOfManyValues checks that the references of an ordinary configuration are expanded, and that a circular
// reference is an error that names it.
func TestExpansionOfManyValues(t *testing.T) {
	data := value.NewMap("domain", "{name}.example.org", "name", "www", "url", "https://{domain}/{path}", "plain",
		"{not_there} {0} {}")
	cfg, err := Layers{Sample: value.NewMap("data", data)}.Merge()
	if err != nil {
		t.Fatal(err)
	}
	got := cfg.Value("data").(*value.Map)
	if got.Value("url") != "https://www.example.org/{path}" || got.Value("plain") != "{not_there} {0} {}" {
		t.Errorf("expanded to %s", value.Repr(got))
	}
	data.Set("name", "{domain}")
	if _, err := (Layers{Sample: value.NewMap("data", data)}).Merge(); err == nil ||
		!strings.Contains(err.Error(), "cfg:data:") || !strings.Contains(err.Error(), "refers to itself") {
		t.Errorf("a circle: %v", err)
	}
}
