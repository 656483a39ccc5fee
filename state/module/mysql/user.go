package mysql

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// user implements mysql_user.present.
type user struct {
	server
	Host              string `sls:"host"`
	Password          string `sls:"password"`
	PasswordHash      string `sls:"password_hash"`
	AllowPasswordless bool   `sls:"allow_passwordless"`
	UnixSocket        bool   `sls:"unix_socket"`
	PasswordColumn    any    `sls:"password_column"` // no effect: the password is read from authentication_string
	AuthPlugin        string `sls:"auth_plugin"`
}

func (u *user) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, u)
}
func (u *user) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, u)
}

func (u *user) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	if u.Password == "" && u.PasswordHash == "" && !u.AllowPasswordless && !u.UnixSocket {
		return client.Work{}, diag.Argument.Hint(fmt.Errorf("user %s would have no password", u.Name),
			"set password or password_hash, or allow_passwordless: True")
	}
	who := account(u.Name, u.Host)
	rows, err := u.rows(ctx, h, "SELECT plugin, authentication_string FROM mysql.user WHERE User = "+client.Quoted(u.Name)+
		" AND Host = "+client.Quoted(u.Host))
	if err != nil {
		return client.Work{}, err
	}
	isMaria, err := u.mariaDB(ctx, h)
	if err != nil {
		return client.Work{}, err
	}
	if len(rows) == 0 {
		w := client.Created("user", u.Name, "CREATE USER "+who+u.identified(isMaria))
		return w, nil
	}
	same, err := u.same(ctx, h, rows[0])
	if err != nil || same {
		return client.Work{Fine: fmt.Sprintf("the user %s is as declared", who)}, err
	}
	return client.Work{Statements: []string{"ALTER USER " + who + u.identified(isMaria)},
		Changes: value.NewMap(u.Name, "Updated"), Would: "change the password of " + who}, nil
}

func (m *server) mariaDB(ctx context.Context, h *host.Host) (bool, error) {
	rows, err := m.rows(ctx, h, "SELECT VERSION()")
	return err == nil && len(rows) > 0 && strings.Contains(strings.ToLower(rows[0][0]), "mariadb"), err
}

// identified returns the SQL for the authentication of the user. A native password is sent to the server as its
// hash.
func (u *user) identified(isMaria bool) string {
	hash := u.PasswordHash
	if hash == "" && u.Password != "" {
		hash = nativeHash(u.Password)
	}
	word := " AS "
	switch {
	case u.UnixSocket && isMaria:
		return " IDENTIFIED VIA unix_socket"
	case u.UnixSocket:
		return " IDENTIFIED WITH auth_socket"
	case hash == "":
		return " IDENTIFIED BY ''"
	case isMaria && u.AuthPlugin == "mysql_native_password":
		return " IDENTIFIED BY PASSWORD " + client.Quoted(hash)
	case isMaria:
		word = " USING "
		if u.PasswordHash == "" {
			return " IDENTIFIED VIA " + u.plugin() + " USING PASSWORD(" + client.Quoted(u.Password) + ")"
		}
		return " IDENTIFIED VIA " + u.plugin() + word + client.Quoted(hash)
	case u.AuthPlugin == "mysql_native_password" || u.PasswordHash != "":
		return " IDENTIFIED WITH " + u.plugin() + word + client.Quoted(hash)
	}
	return " IDENTIFIED WITH " + u.plugin() + " BY " + client.Quoted(u.Password)
}

// plugin returns the quoted name of the plugin.
func (u *user) plugin() string { return tick(u.AuthPlugin) }

// nativeHash returns the hash of a native password.
func nativeHash(password string) string {
	first := sha1.Sum([]byte(password))
	second := sha1.Sum(first[:])
	return "*" + strings.ToUpper(hex.EncodeToString(second[:]))
}

// same reports whether an existing user has the declared authentication. A password with a salted hash can only be
// checked by logging in.
func (u *user) same(ctx context.Context, h *host.Host, row []string) (bool, error) {
	plugin, kept := row[0], ""
	if len(row) > 1 {
		kept = row[1]
	}
	switch {
	case u.UnixSocket:
		return plugin == "unix_socket" || plugin == "auth_socket", nil
	case u.PasswordHash != "":
		return strings.EqualFold(kept, u.PasswordHash), nil
	case u.Password == "":
		return kept == "", nil
	case plugin == "mysql_native_password" || plugin == "":
		return u.AuthPlugin == "mysql_native_password" && strings.EqualFold(kept, nativeHash(u.Password)), nil
	case plugin != u.AuthPlugin && u.AuthPlugin != "mysql_native_password":
		return false, nil
	}
	login := server{ConnUser: u.Name, ConnPass: u.Password, ConnHost: u.ConnHost, ConnPort: u.ConnPort,
		ConnSocket: u.ConnSocket, settings: func(name string) string {
			if u.settings == nil || strings.HasSuffix(name, "default_file") {
				return ""
			}
			return u.settings(name)
		}}
	_, err := login.rows(ctx, h, "SELECT 1")
	if errors.Is(err, client.ErrNoServer) {
		return false, err
	}
	return err == nil, nil
}

// userAbsent implements mysql_user.absent.
type userAbsent struct {
	server
	Host string `sls:"host"`
}

func (u *userAbsent) Gone() bool { return true }
func (u *userAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, u)
}
func (u *userAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, u)
}

func (u *userAbsent) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	who := account(u.Name, u.Host)
	rows, err := u.rows(ctx, h, "SELECT 1 FROM mysql.user WHERE User = "+client.Quoted(u.Name)+
		" AND Host = "+client.Quoted(u.Host))
	if err != nil || len(rows) == 0 {
		return client.Work{Fine: "there is no user " + who}, err
	}
	return client.Work{Statements: []string{"DROP USER " + who}, Changes: value.NewMap(u.Name, "Absent"),
		Would: "drop the user " + who}, nil
}
