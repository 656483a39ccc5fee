package journal

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Names has the redacted forms of paths and other names that contain a secret of the run. The journal keeps the names
// themselves, since a restore needs them. A name without a secret is not in it.
type Names map[string]string

// namesOf returns the redacted forms of the names of a subject, of the parts of its image, and of the directories above
// them. A name that is too short to be found in other text is left out.
func namesOf(s host.Subject, i image.Image, hide func(string) string) (all Names) {
	for _, name := range append(image.Names(i), s.Name) {
		for ; len(name) >= redact.Shortest && hide(name) != name; name = path.Dir(name) {
			if all == nil {
				all = Names{}
			}
			all[name] = hide(name)
		}
	}
	return all
}

// Redactor returns a function that replaces, in a text, the names with secrets of the chapters with their redacted
// forms. Each function that shows the content of the journal applies it, since only the run that wrote a chapter had
// its secrets.
func Redactor(chapters []*Chapter) func(string) string {
	all := Names{}
	for _, c := range chapters {
		for _, r := range c.Records {
			maps.Copy(all, r.Shown)
		}
	}
	if len(all) == 0 {
		return func(text string) string { return text }
	}
	longestFirst := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, name := range longestFirst {
		pairs = append(pairs, name, all[name])
	}
	return strings.NewReplacer(pairs...).Replace
}

// addShown adds redacted forms of names to those of the record.
func (c *Change) addShown(names Names) {
	if len(names) > 0 && c.Shown == nil {
		c.Shown = Names{}
	}
	maps.Copy(c.Shown, names)
}
