package compile

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Unmet lists requisites on IDs and names that no file declares, if other problems prevent the compilation of the
// files. A file that could not be read may declare any name that its text mentions. If such a file is missing or
// includes others, nothing is certain, and the list is empty.
func Unmet(high *High) (problems diag.List) {
	for _, text := range high.Unread {
		if text == "" || strings.Contains(text, "include") {
			return nil
		}
	}
	known := declaredNames(high)
	for id, body := range high.Data.All() {
		m, _ := body.(*value.Map)
		for state, run := range m.All() {
			list, _ := run.(*value.List)
			if list != nil && !internal(state) && !strings.HasPrefix(value.Str(id), "__") {
				unmetBy(high, value.Str(id), value.Str(state), list, known, &problems)
			}
		}
	}
	return problems
}

// unmetBy adds the requisites of a state that name no declaration.
func unmetBy(high *High, id, state string, list *value.List, known map[string]bool, problems *diag.List) {
	for _, argument := range list.Items {
		m, _ := argument.(*value.Map)
		for key, v := range m.All() {
			kind := value.Str(key)
			wanted, ok := v.(*value.List)
			if !ok || !slices.Contains(append(kinds(), "listen", "listen_in"), kind) {
				continue
			}
			for _, t := range newIndex(nil).targets(wanted) {
				if t.State != "sls" && !strings.ContainsAny(t.Name, "*?[") && !known[t.Name] && !mentioned(high.Unread, t.Name) {
					problems.Add(high.at(id, state, kind), "%s of %s: there is no %s", kind, id,
						t).WithHint(diag.Requisite, "include the SLS that declares it, or correct the name")
				}
			}
		}
	}
}

// declaredNames returns the IDs of all states, and their name arguments.
func declaredNames(high *High) map[string]bool {
	known := map[string]bool{}
	for id, body := range high.Data.All() {
		known[value.Str(id)] = true
		m, _ := body.(*value.Map)
		for _, run := range m.All() {
			list, _ := run.(*value.List)
			if list == nil {
				continue
			}
			for _, argument := range list.Items {
				if a, ok := argument.(*value.Map); ok {
					addNames(known, a)
				}
			}
		}
	}
	return known
}

func addNames(known map[string]bool, argument *value.Map) {
	known[value.Str(argument.Value("name"))] = true
	names, _ := argument.Value("names").(*value.List)
	if names == nil {
		return
	}
	for _, name := range names.Items {
		if m, ok := name.(*value.Map); ok {
			for key := range m.All() {
				known[value.Str(key)] = true
			}
			continue
		}
		known[value.Str(name)] = true
	}
}

func mentioned(texts []string, name string) bool {
	for _, text := range texts {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}
