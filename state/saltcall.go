package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// SaltCall converges with real Salt, without a master.
type SaltCall struct{ Program string }

// Compile writes a minion configuration for this run. Salt reports mistakes in SLS files when it runs.
func (s SaltCall) Compile(_ context.Context, r Request) (Program, error) {
	dir := filepath.Join(r.WorkDir, "salt")
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("preparing salt-call: %w", err)
	}
	// JSON is YAML, and quotes everything that needs it.
	config, err := json.MarshalIndent(minionConfig(r), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("preparing salt-call: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, "minion"), append(config, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("preparing salt-call: %w", err)
	}
	argv := []string{s.Program, "--local", "--config-dir", dir, "--retcode-passthrough", "--out", "json",
		"state.highstate"}
	if r.Test {
		argv = append(argv, "test=True")
	}
	return prepare(r, program{argv: argv, read: readHighstate})
}

func minionConfig(r Request) *value.Map {
	output := r.StateOutput
	if output == "" {
		output = "mixed"
	}
	config := value.NewMap(
		"file_client", "local", "local", true, "master_type", "disable",
		"failhard", r.Failhard, "state_output", output, "state_verbose", r.StateVerbose, "log_level", "info",
		"file_roots", value.NewMap("base", value.Strings(r.StateRoots...)),
		"pillar_roots", value.NewMap("base", value.Strings(r.PillarRoots...)),
		"grains", r.Grains)
	if r.Base != "" {
		config.Set("grains_dirs", value.Strings(filepath.Join(r.Base, "grains")))
	}
	return config
}

// readHighstate parses the output of salt-call into results: {"local": {tag: result}}.
func readHighstate(stdout []byte) (Outcome, error) {
	v, err := value.FromJSON(stdout)
	if err != nil {
		return Outcome{}, err
	}
	document, _ := v.(*value.Map)
	local, ok := document.Value("local").(*value.Map)
	if !ok {
		return Outcome{}, errors.New("salt-call printed no results of states")
	}
	var o Outcome
	for tag, v := range local.All() {
		result, ok := v.(*value.Map)
		parts := strings.Split(value.Str(tag), "_|-")
		if !ok || len(parts) != 4 {
			return Outcome{}, fmt.Errorf("salt-call printed %q as a result of a state", tag)
		}
		o.Results = append(o.Results, foreign(parts, result))
	}
	structsort.Func(o.Results, func(a, b *exec.Result) int { return cmp.Compare(a.RunNum, b.RunNum) })
	return o, nil
}

// foreign converts one of Salt's results.
func foreign(tag []string, result *value.Map) *exec.Result {
	step := &compile.Step{Chunk: value.NewMap(
		"state", tag[0], compile.KeyID, tag[1], "name", tag[2], "fun", tag[3], compile.KeySLS, result.Value(compile.KeySLS))}
	r := &exec.Result{Step: step, Comment: value.Str(result.Value("comment"))}
	switch result.Value("result") {
	case true:
		r.Outcome = exec.Succeeded
	case nil:
		r.Outcome = exec.Pending
	}
	r.Changes, _ = result.Value("changes").(*value.Map)
	r.RunNum, _ = result.Value("__run_num__").(int)
	if ms, ok := result.Value("duration").(float64); ok {
		r.Duration = time.Duration(ms * float64(time.Millisecond))
	}
	r.NotRun = result.Value("__state_ran__") == false
	return r
}
