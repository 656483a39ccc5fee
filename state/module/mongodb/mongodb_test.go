package mongodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

var (
	creates = regexp.MustCompile(`createUser\(\{user: ("[^"]*"), pwd: ("[^"]*"), roles: (\[.*\])\}\)`)
	updates = regexp.MustCompile(`updateUser\(("[^"]*"), \{roles: (\[.*\])\}\)`)
	drops   = regexp.MustCompile(`dropUser\(("[^"]*")\)`)
)

// mongosh simulates the client. It keeps the users and their roles in /users.
func mongosh(t *testing.T, h *statetest.Host) {
	read := func() map[string][]string {
		users := map[string][]string{}
		data, _ := h.Files.ReadFile("/users") // missing before the first user
		_ = json.Unmarshal(data, &users)
		return users
	}
	write := func(users map[string][]string) {
		data, _ := json.Marshal(users)
		h.Build(t, statetest.Tree{"/users": statetest.File(string(data))})
	}
	h.Provide(t, map[string]statetest.Program{"mongosh": func(args []string, c host.Command) (string, error) {
		if line := strings.Join(args, " "); strings.Contains(line, "s3cret") {
			t.Errorf("a password is on the command line: %s", line)
		}
		users, list := read(), []string{}
		if _, refused := users["refused"]; refused {
			return "", errors.New("MongoNetworkError: connect ECONNREFUSED 127.0.0.1:27017")
		}
		name := ""
		switch {
		case creates.MatchString(c.Stdin):
			m := creates.FindStringSubmatch(c.Stdin)
			_, _ = json.Unmarshal([]byte(m[1]), &name), json.Unmarshal([]byte(m[3]), &list)
			if name == "weak" {
				return "", errors.New("the password " + m[2] + " is too weak")
			}
			users[name] = list
			write(users)
		case updates.MatchString(c.Stdin):
			m := updates.FindStringSubmatch(c.Stdin)
			_, _ = json.Unmarshal([]byte(m[1]), &name), json.Unmarshal([]byte(m[2]), &list)
			users[name] = list
			write(users)
		case drops.MatchString(c.Stdin):
			_ = json.Unmarshal([]byte(drops.FindStringSubmatch(c.Stdin)[1]), &name)
			delete(users, name)
			write(users)
		default:
			for user, roles := range users {
				if strings.Contains(c.Stdin, fmt.Sprintf("getUser(%q)", user)) {
					var out []map[string]string
					for _, r := range roles {
						out = append(out, map[string]string{"role": r, "db": "shop"})
					}
					data, _ := json.Marshal(map[string]any{"user": user, "roles": out})
					return "warning: something\ncorpus-answer:" + string(data) + "\n", nil
				}
			}
			return "corpus-answer:null\n", nil
		}
		return "", nil
	}})
}

func TestMongo(t *testing.T) {
	clienttest.Run(t, "mongodb_user", Tables()["mongodb_user"], mongosh)
}

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutClient(t, Tables()["mongodb_user"], "mongodb-mongosh")
}
