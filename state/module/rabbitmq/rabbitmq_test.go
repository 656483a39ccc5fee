package rabbitmq_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/rabbitmq"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// broker simulates RabbitMQ. It keeps each list in a file (/user, /vhost, /perms, /policy, /plugin) with lines
// as rabbitmqctl prints them, and the password in /password.
type broker struct{ h *statetest.Host }

func (b broker) set(file, key, line string) {
	var lines []string
	for l := range strings.Lines(b.h.Text(file)) {
		if l != key+"\n" && !strings.HasPrefix(l, key+"\t") {
			lines = append(lines, l)
		}
	}
	if line != "" {
		lines = append(lines, line+"\n")
	}
	b.h.Put(file, strings.Join(lines, ""))
}

func (b broker) ctl(args []string, stdin string) (string, error) {
	args = slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "-q" })
	password := strings.TrimSuffix(stdin, "\n")
	switch verb, rest := args[0], args[1:]; verb {
	case "list_users":
		return "user\ttags\n" + b.h.Text("/user"), nil
	case "list_vhosts":
		return "name\n" + b.h.Text("/vhost"), nil
	case "list_user_permissions":
		return "vhost\tconfigure\twrite\tread\n" + b.h.Text("/perms"), nil
	case "list_policies":
		return "vhost\tname\tpattern\tapply-to\tdefinition\tpriority\n" + b.h.Text("/policy"), nil
	case "add_user":
		b.set("/user", rest[0], rest[0]+"\t[]")
		b.h.Put("/password", password)
	case "change_password":
		b.h.Put("/password", password)
	case "clear_password":
		b.h.Put("/password", "")
	case "authenticate_user":
		if password != b.h.Text("/password") {
			return "", statetest.Code{Code: 65, Text: "Error: failed to authenticate user"}
		}
	case "set_user_tags":
		b.set("/user", rest[0], rest[0]+"\t["+strings.Join(rest[1:], ", ")+"]")
	case "set_permissions":
		b.set("/perms", rest[1], rest[1]+"\t"+strings.Join(rest[3:], "\t"))
	case "add_vhost":
		b.set("/vhost", rest[0], rest[0])
	case "delete_vhost":
		b.set("/vhost", rest[0], "")
	case "delete_user":
		b.set("/user", rest[0], "")
	case "set_policy": // -p / --priority 0 NAME PATTERN DEFINITION
		n := len(rest)
		b.set("/policy", "/\t"+rest[n-3], strings.Join([]string{"/", rest[n-3], rest[n-2], "all", rest[n-1], rest[3]}, "\t"))
	case "cluster_status":
		return "Running Nodes\n\nrabbit@mq2\n" + b.h.Text("/cluster"), nil
	case "stop_app":
		b.h.Put("/stopped", "yes")
	case "start_app":
		b.h.Put("/stopped", "no")
	case "join_cluster":
		node := rest[len(rest)-1]
		if node == "rabbit@none" || b.h.Text("/stopped") != "yes" {
			return "", statetest.Code{Code: 69, Text: "Error: unable to join"}
		}
		b.h.Put("/cluster", strings.Join(rest, " ")+"\n")
	case "list_parameters":
		return "component\tname\tvalue\n" + b.h.Text("/parameters"), nil
	case "set_parameter":
		b.set("/parameters", rest[0]+"\t"+rest[1], strings.Join(rest, "\t"))
	case "import_definitions": // of the standard input
		var d struct {
			Parameters []struct {
				Component, VHost, Name string
				Value                  json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(stdin), &d); err != nil || d.Parameters[0].VHost != "/" {
			return "", statetest.Code{Code: 65, Text: "Error: failed to deserialise input"}
		}
		p := d.Parameters[0]
		b.set("/parameters", p.Component+"\t"+p.Name, p.Component+"\t"+p.Name+"\t"+string(p.Value))
	case "clear_parameter":
		b.set("/parameters", rest[0]+"\t"+rest[1], "")
	case "clear_policy":
		b.set("/policy", "/\t"+rest[2], "")
	default:
		return "", statetest.Code{Code: 64, Text: "Error: unknown command " + verb}
	}
	return "", nil
}

func (b broker) plugins(args []string, _ string) (string, error) {
	switch args[0] {
	case "list":
		return b.h.Text("/plugin"), nil
	case "enable":
		b.set("/plugin", args[1], args[1])
	case "disable":
		b.set("/plugin", args[1], "")
	}
	return "", nil
}

func TestConformance(t *testing.T) {
	for state, table := range rabbitmq.Tables() {
		t.Run(state, func(t *testing.T) {
			statetest.Run(t, statetest.Suite{
				State:     state,
				Functions: func(*statetest.Host) module.Table { return table },
				Prepare: func(t *testing.T, h *statetest.Host) {
					b := broker{h}
					statetest.UseTools(t, h, map[string]statetest.Tool{"rabbitmqctl": b.ctl, "rabbitmq-plugins": b.plugins})
				},
				Cases: statetest.Load(t, "../../../testdata/modules/rabbitmq/"+state+".yaml"),
			})
		})
	}
}
