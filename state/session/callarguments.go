package session

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// commonArguments returns the arguments by name that all functions of state accept in Salt. Those without a meaning in
// the agent are accepted because scripts pass them.
func commonArguments() []string {
	return []string{"test", "pillar", "pillar_enc", "pillarenv", "saltenv", "queue", "concurrent", "exclude", "mods",
		"mock", "cache",
		"sync_mods", "localconfig", "orchestration_jid", "failhard", "state_output_diff", "tem", "data"}
}

// stateSignatures returns the parameters of the functions of state in Python's notation.
func stateSignatures() map[string]string {
	return map[string]string{
		"state.apply":          "mods=None, **kwargs",
		"state.highstate":      "test=None, queue=None, **kwargs",
		"state.sls":            "mods, test=None, exclude=None, queue=None, sync_mods=None, **kwargs",
		"state.test":           "mods=None, **kwargs",
		"state.sls_id":         "id_, mods, test=None, queue=None, **kwargs",
		"state.single":         "fun, name, test=None, queue=None, **kwargs",
		"state.template":       "tem, queue=None, **kwargs",
		"state.template_str":   "tem, queue=None, **kwargs",
		"state.high":           "data, test=None, queue=None, **kwargs",
		"state.low":            "data, queue=None, **kwargs",
		"state.show_sls":       "mods, test=None, queue=None, **kwargs",
		"state.show_low_sls":   "mods, test=None, queue=None, **kwargs",
		"state.show_lowstate":  "queue=None, **kwargs",
		"state.show_highstate": "queue=None, **kwargs",
		"state.show_top":       "queue=None, **kwargs",
		"state.show_states":    "queue=None, **kwargs",
		"state.sls_exists":     "mods, test=None, queue=None, **kwargs",
		"state.id_exists":      "ids, mods, test=None, queue=None, **kwargs",
		"state.running":        "concurrent=False",
		"state.clear_cache":    "**kwargs",
	}
}

// callArguments returns the arguments that any call may have.
func callArguments() []string { return []string{"test", "pillar", "saltenv", "pillarenv"} }

// knownArguments returns an error if kwargs has an argument that the function of state does not take. The arguments
// of state.single belong to its state and are checked with it.
func knownArguments(name string, kwargs *value.Map) error {
	if name == "state.single" {
		return nil
	}
	for key := range kwargs.All() {
		if err := notOneOf(name, value.Str(key), commonArguments()); err != nil {
			return err
		}
	}
	return nil
}

// misspelledOfState returns an error if an argument of state.single is unknown to the state and looks like a
// misspelt argument of the call.
func (s *Session) misspelledOfState(p *compile.Program, kwargs *value.Map) error {
	for _, step := range p.Steps {
		resource, ok := s.registry().New(step.State(), step.Fun())
		if !ok {
			continue
		}
		warnings, _ := s.decoder.Decode(resource, module.Call{Function: step.Function(), Arguments: step.Chunk, At: step.At})
		for key := range kwargs.All() {
			word := value.Str(key)
			meant := diag.Misspelling(word, callArguments())
			if meant != "" &&
				slices.ContainsFunc(warnings, func(w *diag.Diagnostic) bool { return strings.Contains(w.Message, word) }) {
				return misspelled("state.single "+step.Function(), word, meant)
			}
		}
	}
	return nil
}

func notOneOf(name, word string, known []string) error {
	for _, k := range known {
		if k == word || strings.HasPrefix(word, "__") {
			return nil
		}
	}
	hint := diag.DidYouMean(word, known)
	if hint == "" {
		hint = "its arguments by name are " + strings.Join(known[:9], ", ")
	}
	return misuse(hint, "%s has no argument %s; nothing was done", name, word)
}

// misspelled returns an error for a misspelt argument that changes what a call does, such as tset=True, if the function
// takes arguments with any name and would accept it.
func (s *Session) misspelled(name string, kwargs *value.Map) error {
	parameters, err := s.actions.Parameters(name)
	if err != nil || kwargs.Len() == 0 {
		return err
	}
	own, _ := s.actions.find(name) // such a function may take any name
	known, open := callArguments(), false
	for _, p := range parameters {
		if !own {
			known = append(known, p.Name)
		}
		open = open || p.Kind == function.Keywords
	}
	for key := range kwargs.All() {
		word := value.Str(key)
		if meant := diag.Misspelling(word, known); open && meant != "" && !strings.HasPrefix(word, "__") {
			return misspelled(name, word, meant)
		}
	}
	return nil
}

func misspelled(name, word, meant string) error {
	return misuse("did you mean "+meant+"?", "%s has no argument %s; nothing was done", name, word)
}

// asPublished returns the arguments that a function of the tree receives from a command line: mappings are plain, and a
// function that takes arguments with any name also receives those that Salt's publisher adds.
func (s *Session) asPublished(name string, args []any, kwargs *value.Map) ([]any, *value.Map) {
	plain, named := make([]any, len(args)), value.NewMap()
	for i, v := range args {
		plain[i] = plainly(v)
	}
	for key, v := range kwargs.All() {
		_ = named.SetKey(key, plainly(v)) // the key is valid, since it is in the mapping already
	}
	parameters, err := s.actions.Parameters(name)
	if err != nil { // the call returns it, too
		return plain, named
	}
	if slices.ContainsFunc(parameters, func(p function.Parameter) bool { return p.Kind == function.Keywords }) {
		named.Update(value.NewMap("__pub_fun", name, "__pub_jid", time.Now().UTC().Format("20060102150405000000"),
			"__pub_pid", os.Getpid(), "__pub_tgt", "salt-call"))
	}
	return plain, named
}

// plainly returns a copy of a value in which all mappings are plain instead of ordered.
func plainly(v any) any {
	switch v := v.(type) {
	case *value.Map:
		m := value.NewMap().Plain()
		for key, item := range v.All() {
			_ = m.SetKey(key, plainly(item)) // the key is valid, since it is in the mapping already
		}
		return m
	case *value.List:
		l := value.NewList()
		for _, item := range v.Items {
			l.Append(plainly(item))
		}
		return l
	}
	return v
}
