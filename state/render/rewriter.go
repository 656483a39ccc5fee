package render

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// rewriter changes the data of one file as stateconf describes.
type rewriter struct {
	*stateconf
	doc      *Document
	data     *value.Map
	problems diag.List
}

// declared is a state of a file: its ID, the module, and its arguments.
type declared struct {
	id, module string
	arguments  *value.List
}

func (w *rewriter) run(extract bool) {
	for id, body := range w.data.All() {
		if fun, ok := body.(string); ok {
			w.data.Set(value.Str(id), value.NewMap(fun, value.NewList()))
		}
	}
	w.include()
	if w.ordered && !extract {
		w.requirePrevious()
	}
	if states := w.states(w.data); w.start && len(states) > 0 {
		w.add(".start", "require_in", value.NewList(value.NewMap(states[0].module, states[0].id)))
	}
	if w.goal && !extract {
		all := value.NewList()
		for _, s := range w.states(w.data) {
			all.Append(value.NewMap(s.module, s.id))
		}
		w.add(".goal", "require", all)
	}
	if extensions, ok := w.data.Value(keyExtend).(*value.Map); ok {
		w.rename(extensions)
	}
	w.rename(w.data)
}

// add adds one of the states that only requires others.
func (w *rewriter) add(id, requisite string, others *value.List) {
	if w.data.Has(id) {
		w.problems.Add(w.doc.Pos(w.data, id), "the renderer stateconf adds the ID %s, which the file has already", id).
			WithHint(diag.SLS, "rename it: the renderer uses .start and .goal itself")
		return
	}
	w.data.Set(id, value.NewMap(stateconfSet, value.NewList(value.NewMap(requisite, others))))
}

// states returns the states that a mapping of IDs declares.
func (w *rewriter) states(data *value.Map) (all []declared) {
	for id, body := range data.All() {
		name, isText := id.(string)
		states, ok := body.(*value.Map)
		if !ok || !isText || strings.HasPrefix(name, "__") ||
			slices.Contains([]string{"include", "exclude", keyExtend}, name) {
			continue
		}
		for _, fun := range states.Names() {
			if !strings.HasPrefix(fun, "__") {
				module, _, _ := strings.Cut(fun, ".")
				all = append(all, declared{name, module, argumentsOf(states, fun)})
			}
		}
	}
	return all
}

// argumentsOf returns the list of arguments of a state, which it adds if the file has none.
func argumentsOf(states *value.Map, fun string) *value.List {
	list, ok := states.Value(fun).(*value.List)
	if !ok {
		list = value.NewList()
		if states.Value(fun) == nil {
			states.Set(fun, list)
		}
	}
	return list
}

// include completes the names of SLS files that begin with a dot, relative to the name of this one.
func (w *rewriter) include() {
	if list, ok := w.data.Value("include").(*value.List); ok {
		for i, item := range list.Items {
			env, name := w.env, item
			if m, ok := item.(*value.Map); ok {
				for k, v := range m.All() {
					env, name = value.Str(k), v
				}
			}
			if text, ok := name.(string); ok && strings.HasPrefix(text, ".") {
				list.Items[i] = value.NewMap(env, w.relative(text, w.sls))
			}
		}
	}
	if list, ok := w.data.Value("exclude").(*value.List); ok {
		for _, item := range list.Items {
			m, _ := item.(*value.Map)
			if text, ok := m.Value("sls").(string); ok && strings.HasPrefix(text, ".") {
				m.Set("sls", w.relative(text, w.sls))
			}
		}
	}
}

// relative returns the name that one beginning with dots has below sls.
func (w *rewriter) relative(name, sls string) string {
	rest := strings.TrimLeft(name, ".")
	parents := strings.Split(sls, ".")
	up := len(name) - len(rest)
	if up > len(parents) {
		w.problems.Add(w.doc.Start(), "%s has more dots than the name %s of the SLS has parts", name, sls).
			WithHint(diag.SLS, "each dot goes one part up")
		return name
	}
	return strings.Join(append(slices.Clone(parents[:len(parents)-up]), rest), ".")
}

// absolute returns the full form of an ID that begins with a dot.
func (w *rewriter) absolute(id string) string {
	if strings.Contains(id, "::") {
		return w.relative(id, w.sls)
	}
	full := w.relative(id, w.sls+".")
	if i := strings.LastIndexByte(full, '.'); i >= 0 {
		return full[:i] + "::" + full[i+1:]
	}
	return full
}

func isRequisite(name string) bool {
	switch strings.TrimSuffix(name, "_in") {
	case "require", "watch", "use", "listen", "onchanges", "onfail":
		return true
	}
	return false
}

// references calls f for the references to other states among arguments.
func references(arguments *value.List, f func(requisite string, reference *value.Map, module, id string)) {
	for _, item := range arguments.Items {
		m, _ := item.(*value.Map)
		for key, v := range m.All() {
			list, _ := v.(*value.List)
			if requisite := value.Str(key); isRequisite(requisite) && list != nil {
				for _, one := range list.Items {
					reference, _ := one.(*value.Map)
					for module, id := range reference.All() {
						if text, ok := id.(string); ok {
							f(requisite, reference, value.Str(module), text)
						}
						break
					}
				}
			}
			break
		}
	}
}

// rename completes IDs that begin with a dot, and references to them. As under Salt these states come last, and have
// the argument `name` unless the file sets it.
func (w *rewriter) rename(data *value.Map) {
	for _, s := range w.states(data) {
		references(s.arguments, func(_ string, reference *value.Map, module, id string) {
			if strings.HasPrefix(id, ".") {
				reference.Set(module, w.absolute(id))
			}
		})
	}
	for _, key := range data.Keys() {
		if id, ok := key.(string); ok && strings.HasPrefix(id, ".") {
			w.complete(data, id)
		}
	}
}

// complete gives an ID that begins with a dot the name of the file.
func (w *rewriter) complete(data *value.Map, id string) {
	full := w.absolute(id)
	if data.Has(full) {
		w.problems.Add(w.doc.Pos(data, id), "the ID %s means %s, which the file has already", id, full).
			WithHint(diag.SLS, "rename one of them")
		return
	}
	body := data.Value(id)
	if states, ok := body.(*value.Map); ok {
		w.nameStates(value.NewMap(id, states), id[1:])
	}
	data.Delete(id)
	data.Set(full, body)
	w.doc.rename(full, id)
}

func (w *rewriter) nameStates(declaration *value.Map, name string) {
	for _, s := range w.states(declaration) {
		named := slices.ContainsFunc(s.arguments.Items, func(item any) bool {
			m, _ := item.(*value.Map)
			return m.Len() > 0 && m.Keys()[0] == "name"
		})
		if s.module != "stateconf" && !named {
			s.arguments.Items = slices.Insert(s.arguments.Items, 0, any(value.NewMap("name", name)))
		}
	}
}

// requirePrevious has each state require the one before it.
func (w *rewriter) requirePrevious() {
	all := w.states(w.data)
	place := map[[2]string]int{}
	for i, s := range all {
		place[[2]string{s.module, s.id}] = i
	}
	for i, s := range all {
		w.checkOrder(s, i, place)
		if i == 0 {
			continue
		}
		previous := value.NewMap(all[i-1].module, all[i-1].id)
		if require := argument(s.arguments, "require"); require != nil {
			require.Items = slices.Insert(require.Items, 0, any(previous))
		} else {
			s.arguments.Append(value.NewMap("require", value.NewList(previous)))
		}
	}
}

// argument returns an argument that is a list, or nil.
func argument(arguments *value.List, name string) *value.List {
	for _, item := range arguments.Items {
		m, _ := item.(*value.Map)
		if list, ok := m.Value(name).(*value.List); ok {
			return list
		}
	}
	return nil
}

// checkOrder adds a problem if a state cannot be ordered by its place, which is i.
func (w *rewriter) checkOrder(s declared, i int, place map[[2]string]int) {
	if argument(s.arguments, "names") != nil {
		w.problems.Add(w.doc.Pos(w.data, s.id), "%s has names, which #!stateconf -o does not order", s.id).
			WithHint(diag.SLS, "write the states in a loop of the template")
	}
	references(s.arguments, func(requisite string, _ *value.Map, module, id string) {
		other, ok := place[[2]string{module, id}]
		if in := strings.HasSuffix(requisite, "_in"); ok && (!in && other > i || in && other < i) {
			w.problems.Add(w.doc.Pos(w.data, s.id), "%s of %s names %s, which contradicts the order of #!stateconf -o",
				requisite, s.id, id).WithHint(diag.SLS, "move one of them, or leave -o out")
		}
	})
}
