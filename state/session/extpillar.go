package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// external is one item of the option ext_pillar: a source of pillar data, and what it gets.
type external struct {
	name     string
	argument any
}

// externals reads the option ext_pillar.
func (s *Session) externals() ([]external, error) {
	option := s.options.Value("ext_pillar")
	if !value.Truth(option) {
		return nil, nil
	}
	list, ok := option.(*value.List)
	if !ok {
		return nil, diag.WithHint(fmt.Errorf("ext_pillar is a %s, and a list was expected", value.TypeName(option)),
			"write each source as `- NAME: ARGUMENT`")
	}
	var all []external
	for _, item := range list.Items {
		m, ok := item.(*value.Map)
		if !ok {
			return nil, diag.WithHint(fmt.Errorf("an item of ext_pillar is a %s, and a mapping was expected", value.TypeName(item)),
				"write each source as `- NAME: ARGUMENT`")
		}
		for name, argument := range m.All() {
			all = append(all, external{value.Str(name), argument})
		}
	}
	return all, nil
}

// withExternal merges what the sources of ext_pillar give over a pillar, one after the other. Each sees the pillar so far.
func (s *Session) withExternal(ctx context.Context, pillar *value.Map, sources []external) (*value.Map, error) {
	strategy := value.Strategy(s.option("pillar_source_merging_strategy"))
	if strategy == "" {
		strategy = value.Smart
	}
	for _, source := range sources {
		data, err := s.externalData(ctx, source, pillar)
		if err != nil {
			return pillar, diag.At(diag.Pos{}, "ext_pillar %s: %v", source.name, err).WithHint(diag.HintOf(err))
		}
		if pillar, err = value.Merge(pillar, data, strategy, s.flag("pillar_merge_lists", false)); err != nil {
			return pillar, err
		}
	}
	return pillar, nil
}

// externalData is what one source gives: a module of the tree, or a command.
func (s *Session) externalData(ctx context.Context, e external, pillar *value.Map) (*value.Map, error) {
	var v any
	var err error
	switch {
	case s.own.broken != nil:
		return nil, s.own.broken
	case s.own.hides("pillar", e.name) || s.own.claimed("pillar", e.name):
		v, err = s.own.worker.Do(ctx, "pillar", value.NewMap("name", e.name, "argument", e.argument, "pillar", pillar))
	case e.name == "cmd_yaml" || e.name == "cmd_json":
		v, err = s.printed(ctx, e)
	default:
		return nil, diag.WithHint(errors.New("there is no such source of pillar data"),
			"write it as a module %s.py in _pillar of the state tree, or take it out of the option", e.name)
	}
	if err != nil {
		return nil, err
	}
	if !value.Truth(v) {
		return value.NewMap(), nil
	}
	data, ok := v.(*value.Map)
	if !ok {
		return nil, fmt.Errorf("it gave a %s, and a mapping was expected", value.TypeName(v))
	}
	return data, nil
}

// printed is what a command prints as YAML or JSON. %s in it stands for the ID of the host.
func (s *Session) printed(ctx context.Context, e external) (any, error) {
	command := strings.ReplaceAll(value.Str(e.argument), "%s", s.ID)
	answer, err := s.agentActions.Call(ctx, "cmd.run_all", []any{command}, value.NewMap("python_shell", true))
	if err != nil {
		return nil, err
	}
	m, _ := answer.(*value.Map)
	if code := m.Value("retcode"); code != 0 {
		return nil, fmt.Errorf("the command ended with %s: %s", value.Str(code), value.Str(m.Value("stderr")))
	}
	text := value.Str(m.Value("stdout"))
	if e.name == "cmd_json" {
		return value.FromJSON([]byte(text))
	}
	doc, err := yaml.LoadString(text, "what the command prints")
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}
