package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// accumulators hold the texts of file.accumulated for file states that run later, by file and by name of the
// accumulator.
type accumulators struct {
	mu    sync.Mutex
	texts map[string]*value.Map          // file -> name -> list of texts
	fors  map[string]map[string][]string // file -> name -> the states it is meant for
}

// of returns a copy of the accumulators of a file, or nil if it has none.
func (a *accumulators) of(file string) *value.Map {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := a.texts[file]; ok {
		return value.Copy(m).(*value.Map)
	}
	return nil
}

// lines returns the texts for a file that are meant for the state with an ID, or that name the file itself. If
// no accumulator is meant for either, it returns all texts for the file.
func (a *accumulators) lines(file, id string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var mine, all []string
	for name, list := range a.texts[file].All() {
		texts := parts(list)
		all = append(all, texts...)
		if states := a.fors[file][value.Str(name)]; slices.Contains(states, id) || slices.Contains(states, file) {
			mine = append(mine, texts...)
		}
	}
	if mine != nil {
		return mine
	}
	return all
}

func (a *accumulators) add(file, name string, texts []any, states []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.texts == nil {
		a.texts, a.fors = map[string]*value.Map{}, map[string]map[string][]string{}
	}
	if a.texts[file] == nil {
		a.texts[file], a.fors[file] = value.NewMap(), map[string][]string{}
	}
	list, ok := a.texts[file].Value(name).(*value.List)
	if !ok {
		list = value.NewList()
		a.texts[file].Set(name, list)
	}
	for _, text := range texts {
		if !value.Contains(list.Items, text) {
			list.Append(text)
		}
	}
	a.fors[file][name] = append(a.fors[file][name], states...)
}

// gathered implements file.accumulated: it collects text for a template or a block that a later state writes.
// It changes nothing on the host, so Check does all the work, in a dry run as well.
type gathered struct {
	Name      string `sls:"name"`
	Filename  string `sls:"filename,required"`
	Text      any    `sls:"text"`
	RequireIn any    `sls:"require_in"`
	WatchIn   any    `sls:"watch_in"`

	family *family
}

func (g *gathered) Check(context.Context, *host.Host) (module.Diff, error) {
	if g.Text == nil {
		return module.Diff{}, errors.New("there is no text to accumulate")
	}
	states, forFile := targets(g.RequireIn, g.WatchIn)
	if !forFile {
		return module.Diff{}, diag.Requisite.Hint(fmt.Errorf("nothing uses the accumulator %s", g.Name),
			"add require_in or watch_in with the file state that does")
	}
	texts := []any{g.Text}
	if l, ok := g.Text.(*value.List); ok {
		texts = l.Items
	}
	g.family.accumulated.add(g.Filename, g.Name, texts, states)
	return module.Diff{Comment: "text for " + g.Filename}, nil
}

func (g *gathered) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil
}

// targets returns the names in the given requisites, and whether any of them is a file state.
func targets(requisites ...any) (names []string, forFile bool) {
	for _, r := range requisites {
		list, ok := r.(*value.List)
		if !ok {
			continue
		}
		for _, item := range list.Items {
			m, ok := item.(*value.Map)
			if !ok {
				names = append(names, value.Str(item))
				continue
			}
			for state, name := range m.All() {
				names, forFile = append(names, value.Str(name)), forFile || state == "file"
			}
		}
	}
	return names, forFile
}
