package config

import (
	"go.yaml.in/yaml/v4"

	sls "github.com/corpus-agent/corpus-agent/state/value"
	slsyaml "github.com/corpus-agent/corpus-agent/state/yaml"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// keyExtPillar is the setting with sources of pillar data.
const keyExtPillar = "ext_pillar"

// pillarSources returns the list of sources of pillar data, which is not a plain setting, from a verified file; nil if
// there is none. Values are those of a minion's configuration.
func pillarSources(data []byte, file string) *sls.List {
	doc, err := slsyaml.Load(data, file)
	if err != nil {
		return nil
	}
	settings, _ := doc.Value.(*sls.Map)
	list, _ := settings.Value(keyExtPillar).(*sls.List)
	return list
}

// pillarSources checks a list of sources, each of which is a name with an argument.
func (c *checker) pillarSources(k Key, v *yaml.Node) {
	const hint = "write each source as `- NAME: ARGUMENT`"
	if v.Kind != yaml.SequenceNode {
		c.problems.Add(c.pos(v), "%s: a %s was expected", k.Name, k.Kind).WithHint(diag.Config, hint)
		return
	}
	for _, item := range v.Content {
		if item.Kind != yaml.MappingNode || len(item.Content) != 2 {
			c.problems.Add(c.pos(item), "%s: the name of one source was expected, with what it gets", k.Name).
				WithHint(diag.Config, hint)
		}
	}
}
