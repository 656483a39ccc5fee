package cloud

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is one difference between two clouds.
type Change struct {
	Section string `json:"section"` // such as guests; empty for a value of the whole cloud
	Name    string `json:"name"`
	Kind    string `json:"kind"` // added, removed or changed
	Field   string `json:"field"`
	Old     any    `json:"old,omitempty"`
	New     any    `json:"new,omitempty"`
}

// The kinds of changes.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// Diff returns the changes from one cloud to another, sorted by place, for a person to read before signing. An object
// that was added or removed has a change for each of its fields.
func Diff(before, after *Cloud) ([]Change, error) {
	old, err := before.objects()
	if err != nil {
		return nil, err
	}
	now, err := after.objects()
	if err != nil {
		return nil, err
	}
	all := []Change{}
	for _, section := range sortedKeys(now) {
		for _, name := range union(old[section], now[section]) {
			a, had := old[section][name]
			b, has := now[section][name]
			kind := changed
			switch {
			case !had:
				kind = added
			case !has:
				kind = removed
			}
			for _, field := range fieldsOf(section) {
				if !reflect.DeepEqual(a[field], b[field]) {
					all = append(all, Change{Section: section, Name: name, Kind: kind, Field: field, Old: a[field], New: b[field]})
				}
			}
		}
	}
	return all, nil
}

// union returns the keys of all maps, sorted.
func union[V any](all ...map[string]V) []string {
	joined := map[string]V{}
	for _, one := range all {
		maps.Copy(joined, one)
	}
	return sortedKeys(joined)
}

// fieldsOf returns the keys of the mappings of a section, in the order in which they are written.
func fieldsOf(section string) (fields []string) {
	for _, k := range keys() {
		if section == "" && len(k.of) == 0 {
			fields = append(fields, k.name)
		}
		if section == k.name {
			for _, field := range k.of {
				fields = append(fields, field.name)
			}
		}
	}
	return fields
}

// Text formats changes for people.
func Text(changes []Change) string {
	var b strings.Builder
	signs := map[string]string{added: "+", removed: "-", changed: "~"}
	last := ""
	for _, c := range changes {
		head := fmt.Sprintf("%s %s %s", signs[c.Kind], singular(c.Section), c.Name)
		if head = strings.TrimSuffix(head, " "); head != last {
			b.WriteString(head + "\n")
		}
		last = head
		switch {
		case c.Old == nil || c.Kind == added:
			fmt.Fprintf(&b, "    %s: %s\n", c.Field, shown(c.New))
		case c.New == nil || c.Kind == removed:
			fmt.Fprintf(&b, "    %s: %s ->\n", c.Field, shown(c.Old))
		default:
			fmt.Fprintf(&b, "    %s: %s -> %s\n", c.Field, shown(c.Old), shown(c.New))
		}
	}
	return b.String()
}

// singular returns the word for an object of a section; "cloud" for a value of the whole cloud.
func singular(section string) string {
	if section == "classes" {
		return "class"
	}
	return cmp.Or(strings.TrimSuffix(section, "s"), "cloud")
}

func shown(v any) string {
	list, is := v.([]any)
	if !is {
		return fmt.Sprint(v)
	}
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = fmt.Sprint(item)
	}
	slices.Sort(items)
	return strings.Join(items, ", ")
}
