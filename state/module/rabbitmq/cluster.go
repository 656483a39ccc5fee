package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cluster implements rabbitmq_cluster.joined and rabbitmq_cluster.join.
type cluster struct {
	server
	Name string `sls:"name"` // no effect
	Host string `sls:"host,required"`
	User string `sls:"user"` // part of the name of the node: USER@HOST
	RAM  bool   `sls:"ram_node"`
}

func (c *cluster) node() string { return c.User + "@" + c.Host }
func (c *cluster) what() string { return "the cluster of " + c.node() }
func (c *cluster) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, c)
}

// Apply joins the cluster. Meanwhile the application of the node is stopped. It is started again even if the
// node could not join.
func (c *cluster) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	report, err := apply(ctx, h, c)
	if err != nil {
		if ok, _ := c.through().Ready(h); ok {
			_, started := c.through().Do(ctx, h, "start_app")
			err = errors.Join(err, started)
		}
	}
	return report, err
}

func (c *cluster) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	out, err := c.through().Ask(ctx, h, "-q", "cluster_status")
	if err != nil {
		return t, diag.Server.Hint(err, "the server has to run: require a service.running state of rabbitmq-server")
	}
	names := strings.FieldsFunc(out, func(r rune) bool { return strings.ContainsRune(" \t\r\n,'\"[]{}()", r) })
	if slices.Contains(names, c.node()) {
		return t, nil
	}
	join := []string{"join_cluster"}
	if c.RAM {
		join = append(join, "--ram")
	}
	t.changes = value.NewMap("old", "", "new", c.node())
	t.steps = []step{ctlStep("stop_app"), ctlStep(append(join, c.node())...), ctlStep("start_app")}
	return t, nil
}

// upstream implements rabbitmq_upstream.present.
type upstream struct {
	server
	Name string `sls:"name"`
	URI  string `sls:"uri,required"` // one or more URIs, separated by spaces
	options
}

// options holds the arguments for which RabbitMQ has defaults.
type options struct {
	PrefetchCount  *int    `sls:"prefetch_count" json:"prefetch-count,omitempty"`
	ReconnectDelay *int    `sls:"reconnect_delay" json:"reconnect-delay,omitempty"`
	AckMode        *string `sls:"ack_mode" json:"ack-mode,omitempty"`
	TrustUserID    *bool   `sls:"trust_user_id" json:"trust-user-id,omitempty"`
	Exchange       *string `sls:"exchange" json:"exchange,omitempty"`
	MaxHops        *int    `sls:"max_hops" json:"max-hops,omitempty"`
	Expires        *int    `sls:"expires" json:"expires,omitempty"`
	MessageTTL     *int    `sls:"message_ttl" json:"message-ttl,omitempty"`
	HAPolicy       *string `sls:"ha_policy" json:"ha-policy,omitempty"`
	Queue          *string `sls:"queue" json:"queue,omitempty"`
}

func (u *upstream) what() string { return "the upstream " + u.Name }
func (u *upstream) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, u)
}
func (u *upstream) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, u)
}

// definition returns the upstream as JSON, with the arguments that are set.
func (u *upstream) definition() (string, error) {
	definition := struct {
		*options
		URI any `json:"uri"`
	}{&u.options, u.URI}
	if uris := strings.Fields(u.URI); len(uris) > 1 {
		definition.URI = uris
	}
	text, err := json.Marshal(definition)
	return string(text), err
}

const upstreamKind = "federation-upstream"

func (u *upstream) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	definition, err := u.definition()
	if err != nil {
		return t, err
	}
	old, err := u.upstreamOf(ctx, h, u.Name)
	if err != nil || sameJSON(old, definition) {
		return t, err
	}
	was := ""
	if old != "" {
		was = u.Name
	}
	t.changes = value.NewMap("old", was, "new", u.Name)
	t.steps = []step{ctlStep("set_parameter", upstreamKind, u.Name, definition)}
	if redact.HoldsLogin(u.URI) {
		t.steps, err = u.imported(definition)
	}
	return t, err
}

// imported returns the step that sets an upstream with a password: every user can read the arguments of rabbitmqctl,
// and it reads import_definitions from its standard input.
func (u *upstream) imported(definition string) ([]step, error) {
	text, err := json.Marshal(map[string]any{"parameters": []map[string]any{{"component": upstreamKind, "vhost": "/",
		"name": u.Name, "value": json.RawMessage(definition)}}})
	return []step{{program: ctl, args: []string{"import_definitions"}, stdin: string(text)}}, err
}

// upstreamOf returns the definition of an upstream on the server; "" if it does not exist.
func (s server) upstreamOf(ctx context.Context, h *host.Host, name string) (string, error) {
	rows, err := s.rows(ctx, h, "component", "list_parameters")
	for _, row := range rows {
		if len(row) >= 3 && row[0] == upstreamKind && row[1] == name {
			return row[2], nil
		}
	}
	return "", err
}

// noUpstream implements rabbitmq_upstream.absent.
type noUpstream struct {
	server
	Name string `sls:"name"`
}

func (u *noUpstream) what() string { return fmt.Sprintf("the upstream %s", u.Name) }
func (u *noUpstream) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, u)
}
func (u *noUpstream) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, u)
}

func (u *noUpstream) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	old, err := u.upstreamOf(ctx, h, u.Name)
	if err == nil && old != "" {
		t.changes = value.NewMap("old", u.Name, "new", "")
		t.steps = []step{ctlStep("clear_parameter", upstreamKind, u.Name)}
	}
	return t, err
}
