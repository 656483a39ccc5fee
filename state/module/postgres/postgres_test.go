package postgres

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestPasswordHashes checks that passwords are hashed as the server hashes them.
func TestPasswordHashes(t *testing.T) {
	if got, want := md5Password("bob", "secret"),
		"md521f3163f8f86fa10bdefbfbd502a8f06"; got != want { // md5 of "secretbob"
		t.Errorf("the md5 of a password is %s, want %s", got, want)
	}
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	// The example in RFC 7677: user "user", password "pencil", 4096 rounds. Its server signature follows from the
	// server key at the end of the verifier.
	got, err := scram("pencil", salt, 4096)
	want := "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$" +
		"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if err != nil || got != want {
		t.Errorf("the verifier is\n%s, %v, want\n%s", got, err, want)
	}
	if again, err := scramAgain(want, "pencil"); err != nil || again != want {
		t.Errorf("the same password gives another verifier: %s, %v", again, err)
	}
	if again, _ := scramAgain(want, "pen"); again == want {
		t.Error("another password gives the same verifier")
	}
	for _, bad := range []string{"", "SCRAM-SHA-256$x", "SCRAM-SHA-256$0:AAAA$x:y", "SCRAM-SHA-256$99999999999:AAAA$x:y",
		"SCRAM-SHA-256$1:%$x:y"} {
		if _, err := scramAgain(bad, "x"); err == nil {
			t.Errorf("%q is accepted as a verifier", bad)
		}
	}
}

func TestNames(t *testing.T) {
	if got := ident(`a"b`); got != `"a""b"` {
		t.Errorf("a name is written %s", got)
	}
	if got := client.Quoted(`it's \ `); got != `'it''s \ '` {
		t.Errorf("a text is written %s", got)
	}
}

// TestPostgresSecrets checks that passwords are on no command line and in no error, and that only their hashes
// are sent to the server.
func TestPostgresSecrets(t *testing.T) {
	var inputs []string
	psql := func(args []string, c host.Command) (string, error) {
		if line := strings.Join(args, " "); strings.Contains(line, "s3cret") || strings.Contains(line, "adm1n") {
			t.Errorf("a password is on the command line: %s", line)
		}
		if !strings.Contains(strings.Join(c.Env, "\n"), "PGPASSWORD=adm1n") {
			t.Error("the client does not get its password")
		}
		inputs = append(inputs, c.Stdin)
		switch {
		case strings.Contains(c.Stdin, "SHOW password_encryption"):
			return "scram-sha-256\x1e", nil
		case strings.Contains(c.Stdin, "CREATE ROLE"):
			return "", statetest.Exit{Code: 3, Text: "ERROR: no\nLINE 1: " + c.Stdin + "\nadm1n"}
		}
		return "", nil
	}
	h := statetest.NewHost(t)
	h.Provide(t, map[string]statetest.Program{"psql": psql})
	r, d := hosttest.Look(t, h.Host, Tables(nil)["postgres_user"],
		"present", value.NewMap("name", "bob", "password", "s3cret",
			"db_host", "db.example.org", "db_user", "root", "db_password", "adm1n"))
	if want := value.NewMap("bob", "Present"); !value.Equal(d.Changes, want) {
		t.Fatalf("the check gives %+v", d)
	}
	_, err := r.Apply(context.Background(), h.Host, d)
	if err == nil || strings.Contains(err.Error(), "adm1n") || strings.Contains(err.Error(), "SCRAM") {
		t.Errorf("the error is %v", err)
	}
	all := strings.Join(inputs, "\n")
	if strings.Contains(all, "s3cret") || !strings.Contains(all, "PASSWORD 'SCRAM-SHA-256$4096:") {
		t.Errorf("the server gets %s", all)
	}
}

// TestNoServer checks that a dry run reports unknown changes if the server does not respond, since an earlier
// state may start it.
func TestNoServer(t *testing.T) {
	h := statetest.NewHost(t)
	h.Provide(t, map[string]statetest.Program{"psql": func([]string, host.Command) (string, error) {
		return "", statetest.Exit{Code: 2, Text: "psql: error: connection to server on socket failed: Connection refused"}
	}})
	r, d := hosttest.Look(t, h.Host, Tables(nil)["postgres_database"],
		"present", value.NewMap("name", "shop", "user", "root"))
	if !d.Unknown {
		t.Errorf("the check gives %+v", d)
	}
	_, err := r.Apply(context.Background(), h.Host, d)
	if !errors.Is(err, client.ErrNoServer) || !strings.Contains(diag.HintOf(err), "service.running") {
		t.Errorf("a run gives %v (hint: %s)", err, diag.HintOf(err))
	}
}

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutClient(t, Tables(nil)["postgres_database"], "postgresql-client")
}
