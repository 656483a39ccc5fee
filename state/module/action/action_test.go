package action_test

import (
	"context"
	"errors"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/action"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// few provides functions that return their arguments.
type few struct{}

func (few) parameters() map[string][]action.Parameter {
	return map[string][]action.Parameter{
		"x.plain":  {{Name: "name", Required: true}, {Name: "runas"}, {Name: "more"}},
		"x.rest":   {{Name: "path", Required: true}, {Name: "args", Rest: true}},
		"x.open":   {{Name: "repo", Required: true}, {Name: "kwargs", Keywords: true}},
		"x.fails":  {},
		"x.no":     {},
		"x.code":   {},
		"x.result": {},
	}
}

func (f few) Has(name string) bool { return f.parameters()[name] != nil }

func (few) Unknown(name string) error { return errors.New("there is no function " + name) }

func (f few) Parameters(name string) ([]action.Parameter, error) { return f.parameters()[name], nil }

func (few) Call(_ context.Context, name string, args []any, kwargs *value.Map) (any, error) {
	switch name {
	case "x.fails":
		return nil, errors.New("x.fails: it is broken")
	case "x.no":
		return false, nil
	case "x.code":
		return value.NewMap("retcode", 7, "stderr", "first\nlast\n"), nil
	case "x.result":
		return value.NewMap("a", value.NewMap("result", false)), nil
	}
	return value.NewList(value.NewList(args...), kwargs), nil
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "module",
		Functions: func(*statetest.Host) module.Table { return action.Functions(few{}) },
		Cases:     statetest.Load(t, "../../../testdata/modules/module.yaml"),
	})
}

// TestReactionToAWatchedChange calls functions after a change of a watched state.
func TestReactionToAWatchedChange(t *testing.T) {
	for _, function := range []string{"wait", "watch", "run"} {
		resource := action.Functions(few{})[function]()
		_, problems := module.Decode(resource,
			module.Call{Function: "module." + function, Arguments: value.NewMap("name", "x.plain", "m_name", "a")})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		watched := resource.(module.Watcher).Watched()
		d, err := watched.Check(context.Background(), nil)
		if err != nil || !d.Unknown {
			t.Fatalf("%s: the check gives %+v, %v", function, d, err)
		}
		report, err := watched.Apply(context.Background(), nil, d)
		want := value.NewMap("ret", value.NewList(value.NewList(), value.NewMap("name", "a")))
		if err != nil || !value.Equal(report.Changes, want) {
			t.Errorf("%s: the report is %s, %v, want %s", function, value.Repr(report.Changes), err, value.Repr(want))
		}
	}
}
