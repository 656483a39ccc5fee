package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// chance is a boolean that is either fixed or random in each run.
type chance struct{ yes, random bool }

// chanceOf parses a boolean, or Random.
func chanceOf(v any) (chance, error) {
	if v == "Random" {
		return chance{random: true}, nil
	}
	yes, err := module.Boolean(v)
	if err != nil {
		err = fmt.Errorf("it is %s, and may be True, False or Random", value.Repr(v))
	}
	return chance{yes: yes}, err
}

func (c chance) decide() bool { return c.yes || c.random && rand.N(2) == 1 }

// configurable implements test.configurable_test_state, whose result and changes may be random.
type configurable struct {
	Changes any      `sls:"changes"`
	Result  any      `sls:"result"`
	Comment string   `sls:"comment"`
	Warn    []string `sls:"warnings"`
	Changed []string `sls:"__changed__"`
}

func (c *configurable) chances() (changes, result chance, err error) {
	changes, errChanges := chanceOf(c.Changes)
	result, errResult := chanceOf(c.Result)
	return changes, result, errors.Join(errChanges, errResult)
}

// Valid returns an error for values that are neither booleans nor Random.
func (c *configurable) Valid() error {
	_, _, err := c.chances()
	return err
}

func (c *configurable) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	changes, result, err := c.chances()
	if err != nil {
		return module.Diff{}, err
	}
	if changes.random || result.random && !changes.yes {
		return module.Diff{Unknown: true, Comment: c.Comment, Warnings: c.Warn}, nil
	}
	return c.decided(changes, result).Check(ctx, h)
}

// decided returns a state with the outcome of one run.
func (c *configurable) decided(changes, result chance) *pretender {
	return &pretender{Changes: changes.decide(), Result: result.decide(), Comment: c.Comment,
		Warn: c.Warn, Changed: c.Changed}
}

// ActsAlways reports whether the state reports changes in every run.
func (c *configurable) ActsAlways() bool {
	changes, _, _ := c.chances()
	return changes.yes
}

func (c *configurable) Apply(_ context.Context, _ *host.Host, _ module.Diff) (module.Report, error) {
	changes, result, err := c.chances()
	if err != nil {
		return module.Report{}, err
	}
	p := c.decided(changes, result)
	report := module.Report{Comment: p.Comment}
	if p.Changes {
		report.Changes = pretended()
	}
	return report, p.failure()
}

func (c *configurable) Watched() module.Resource {
	return &fired{Changed: c.Changed, Comment: c.Comment}
}
