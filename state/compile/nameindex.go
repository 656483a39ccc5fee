package compile

import "github.com/corpus-agent/corpus-agent/state/value"

// nameIndex finds IDs by the values of their arguments, as requisites and extensions do.
type nameIndex struct {
	high *value.Map
	ids  map[string]map[string][]string // state, value, IDs; built at the first use
	sls  map[string][]string            // SLS file, IDs; likewise
}

func newNameIndex(high *value.Map) *nameIndex { return &nameIndex{high: high} }

// find returns the IDs to which a name may refer: the name itself if it is an ID, or else the IDs in the SLS file of
// this name, or those whose state has an argument with this value. If strict is set, an ID must have the state.
func (n *nameIndex) find(name, state string, strict bool) []string {
	body, ok := n.high.Value(name).(*value.Map)
	if n.high.Has(name) && (!strict || ok && body.Has(state)) {
		return []string{name}
	}
	if state == "sls" {
		return n.inFile(name)
	}
	if n.ids == nil {
		n.build()
	}
	return n.ids[state][name]
}

func (n *nameIndex) inFile(sls string) []string {
	if n.sls == nil {
		n.sls = map[string][]string{}
		for id, body := range n.high.All() {
			m, _ := body.(*value.Map)
			if file, ok := m.Value(KeySLS).(string); ok {
				n.sls[file] = append(n.sls[file], value.Str(id))
			}
		}
	}
	return n.sls[sls]
}

func (n *nameIndex) build() {
	n.ids = map[string]map[string][]string{}
	for id, body := range n.high.All() {
		m, _ := body.(*value.Map)
		for key, run := range m.All() {
			if list, ok := run.(*value.List); ok && !internal(key) {
				n.add(value.Str(id), value.Str(key), list)
			}
		}
	}
}

func (n *nameIndex) add(id, state string, arguments *value.List) {
	for _, argument := range arguments.Items {
		m, ok := argument.(*value.Map)
		if !ok || m.Len() != 1 {
			continue
		}
		_, v, _ := single(argument)
		name, ok := v.(string)
		if !ok {
			continue
		}
		if n.ids[state] == nil {
			n.ids[state] = map[string][]string{}
		}
		n.ids[state][name] = append(n.ids[state][name], id)
	}
}
