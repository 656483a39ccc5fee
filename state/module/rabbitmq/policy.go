package rabbitmq

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// policy implements rabbitmq_policy.present.
type policy struct {
	server
	Name       string `sls:"name"`
	Pattern    string `sls:"pattern,required"`
	Definition any    `sls:"definition,required"` // JSON text or a mapping
	Priority   int    `sls:"priority"`
	VHost      string `sls:"vhost"`
	ApplyTo    string `sls:"apply_to"`
}

func (p *policy) what() string { return fmt.Sprintf("the policy %s of %s", p.Name, p.VHost) }
func (p *policy) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, p)
}
func (p *policy) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, p)
}

// definition returns the definition as JSON.
func (p *policy) definition() (string, error) {
	text, ok := p.Definition.(string)
	if !ok {
		data, err := json.Marshal(p.Definition)
		return string(data), err
	}
	if !json.Valid([]byte(text)) {
		return "", diag.Argument.Hint(fmt.Errorf("the definition %s is not JSON", text),
			`write it as a mapping, or as '{"ha-mode":"all"}'`)
	}
	return text, nil
}

func (p *policy) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	definition, err := p.definition()
	if err != nil {
		return t, err
	}
	row, err := policyRow(ctx, h, p.server, p.VHost, p.Name)
	if err != nil || row != nil && p.equals(row, definition) {
		return t, err
	}
	args := []string{"set_policy", "-p", p.VHost, "--priority", strconv.Itoa(p.Priority)}
	if p.ApplyTo != "" {
		args = append(args, "--apply-to", p.ApplyTo)
	}
	t.changes = value.NewMap("old", strings.Join(row, " "), "new", p.Name)
	t.steps = []step{ctlStep(append(args, p.Name, p.Pattern, definition)...)}
	return t, nil
}

// policyRow returns the columns of a policy on the server: virtual host, name, pattern, what it applies to, definition
// and priority. It returns nil if there is no such policy.
func policyRow(ctx context.Context, h *host.Host, s server, vhost, name string) ([]string, error) {
	rows, err := s.rows(ctx, h, "vhost", "list_policies", "-p", vhost)
	at := slices.IndexFunc(rows, func(row []string) bool { return len(row) >= 6 && row[0] == vhost && row[1] == name })
	if err != nil || at < 0 {
		return nil, err
	}
	return rows[at], nil
}

func (p *policy) equals(row []string, definition string) bool {
	pattern, applies, priority := row[2], row[3], row[5]
	return pattern == p.Pattern && (p.ApplyTo == "" || applies == p.ApplyTo) && priority == strconv.Itoa(p.Priority) &&
		sameJSON(row[4], definition)
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// noPolicy implements rabbitmq_policy.absent.
type noPolicy struct {
	server
	Name  string `sls:"name"`
	VHost string `sls:"vhost"`
}

func (p *noPolicy) what() string { return fmt.Sprintf("the policy %s of %s", p.Name, p.VHost) }
func (p *noPolicy) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, p)
}
func (p *noPolicy) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, p)
}

func (p *noPolicy) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	row, err := policyRow(ctx, h, p.server, p.VHost, p.Name)
	if err == nil && row != nil {
		t.changes = value.NewMap("new", "", "old", p.Name)
		t.steps = []step{ctlStep("clear_policy", "-p", p.VHost, p.Name)}
	}
	return t, err
}
