package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// role implements postgres_user.present and postgres_group.present. By default, only a user can log in.
type role struct {
	server
	CreateDB        *bool  `sls:"createdb"`
	CreateRoles     *bool  `sls:"createroles"`
	CreateUser      *bool  `sls:"createuser"` // an old alias of superuser
	Superuser       *bool  `sls:"superuser"`
	Replication     *bool  `sls:"replication"`
	Inherit         *bool  `sls:"inherit"`
	Login           *bool  `sls:"login"`
	Password        string `sls:"password"`
	DefaultPassword string `sls:"default_password"` // the password of a new role
	RefreshPassword bool   `sls:"refresh_password"` // also set a password that cannot be compared
	Encrypted       any    `sls:"encrypted"`        // md5 or scram-sha-256; the default is the setting of the server
	ValidUntil      string `sls:"valid_until"`
	Groups          any    `sls:"groups"`

	user bool
}

func (r *role) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, r)
}
func (r *role) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, r)
}

// what returns the kind of role for messages.
func (r *role) what() string {
	if r.user {
		return "user"
	}
	return "group"
}

// flag is an attribute of a role.
type flag struct {
	name, word, column string
	want               *bool
}

func (r *role) flags() []flag {
	super := r.Superuser
	if super == nil {
		super = r.CreateUser
	}
	return []flag{
		{"createdb", "CREATEDB", "rolcreatedb", r.CreateDB}, {"createroles", "CREATEROLE", "rolcreaterole", r.CreateRoles},
		{"superuser", "SUPERUSER", "rolsuper", super}, {"replication", "REPLICATION", "rolreplication", r.Replication},
		{"inherit", "INHERIT", "rolinherit", r.Inherit}, {"login", "LOGIN", "rolcanlogin", r.Login},
	}
}

func (r *role) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	columns := []string{}
	for _, f := range r.flags() {
		columns = append(columns, f.column)
	}
	rows, err := r.rows(ctx, h, "", "SELECT "+strings.Join(columns, ", ")+", coalesce(rolvaliduntil = "+r.until()+
		", false) FROM pg_roles WHERE rolname = "+client.Quoted(r.Name))
	if err != nil {
		return client.Work{}, err
	}
	if len(rows) == 0 {
		return r.create(ctx, h)
	}
	w := client.Work{Fine: fmt.Sprintf("the %s %s is as declared", r.what(), r.Name),
		Would: fmt.Sprintf("change the %s %s", r.what(), r.Name)}
	options, changed := []string{}, value.NewMap()
	for i, f := range r.flags() {
		if f.want != nil && *f.want != (rows[0][i] == "t") {
			options = append(options, no(*f.want)+f.word)
			changed.Set(f.name, *f.want)
		}
	}
	if r.ValidUntil != "" && rows[0][len(columns)] != "t" {
		options = append(options, "VALID UNTIL "+client.Quoted(r.ValidUntil))
		changed.Set("valid_until", r.ValidUntil)
	}
	if r.Password != "" {
		same, err := r.samePassword(ctx, h)
		if err != nil {
			return client.Work{}, err
		}
		if !same {
			option, err := r.password(ctx, h, r.Password)
			if err != nil {
				return client.Work{}, err
			}
			options = append(options, option)
			changed.Set("password", true)
		}
	}
	if len(options) > 0 {
		w.Statements = append(w.Statements, fmt.Sprintf("ALTER ROLE %s WITH %s", ident(r.Name), strings.Join(options, " ")))
	}
	groups, err := r.newGroups(ctx, h)
	if err != nil {
		return client.Work{}, err
	}
	for _, g := range groups {
		w.Statements = append(w.Statements, fmt.Sprintf("GRANT %s TO %s", ident(g), ident(r.Name)))
	}
	if len(groups) > 0 {
		changed.Set("groups", value.Strings(groups...))
	}
	w.Changes = value.NewMap(r.Name, changed)
	return w, nil
}

// until returns the expiry of the role as an SQL expression.
func (r *role) until() string {
	if r.ValidUntil == "" {
		return "NULL"
	}
	return client.Quoted(r.ValidUntil) + "::timestamptz"
}

func no(yes bool) string {
	if yes {
		return ""
	}
	return "NO"
}

func (r *role) create(ctx context.Context, h *host.Host) (client.Work, error) {
	if r.Login == nil {
		login := r.user
		r.Login = &login
	}
	var options []string
	for _, f := range r.flags() {
		if f.want != nil {
			options = append(options, no(*f.want)+f.word)
		}
	}
	if r.ValidUntil != "" {
		options = append(options, "VALID UNTIL "+client.Quoted(r.ValidUntil))
	}
	password := r.Password
	if password == "" {
		password = r.DefaultPassword
	}
	if password != "" {
		option, err := r.password(ctx, h, password)
		if err != nil {
			return client.Work{}, err
		}
		options = append(options, option)
	}
	statements := []string{fmt.Sprintf("CREATE ROLE %s WITH %s", ident(r.Name), strings.Join(options, " "))}
	for _, g := range client.List(r.Groups) {
		statements = append(statements, fmt.Sprintf("GRANT %s TO %s", ident(g), ident(r.Name)))
	}
	return client.Created(r.what(), r.Name, statements...), nil
}

// newGroups returns the declared groups of which the role is not a member.
func (r *role) newGroups(ctx context.Context, h *host.Host) ([]string, error) {
	wanted := client.List(r.Groups)
	if len(wanted) == 0 {
		return nil, nil
	}
	rows, err := r.rows(ctx, h, "",
		"SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r ON r.oid = m.member "+
			"WHERE r.rolname = "+client.Quoted(r.Name))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(wanted, func(g string) bool {
		return slices.ContainsFunc(rows, func(row []string) bool { return row[0] == g })
	}), nil
}

// samePassword reports whether the stored hash belongs to the declared password. If the hash cannot be read, it returns
// true unless refresh_password is set.
func (r *role) samePassword(ctx context.Context, h *host.Host) (bool, error) {
	kept, _, err := r.one(ctx, h, "",
		"SELECT coalesce(rolpassword, '') FROM pg_authid WHERE rolname = "+client.Quoted(r.Name))
	var failed *program.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "permission denied") {
		return !r.RefreshPassword, nil // only a superuser can read the hash
	}
	if err != nil || kept == r.Password {
		return err == nil, err
	}
	if strings.HasPrefix(kept, "md5") {
		return kept == md5Password(r.Name, r.Password), nil
	}
	again, err := scramAgain(kept, r.Password)
	return err == nil && again == kept, nil
}

// password returns the SQL option that sets the password. It contains the hash, so that the password itself
// does not leave the host.
func (r *role) password(ctx context.Context, h *host.Host, plain string) (string, error) {
	if strings.HasPrefix(plain, "SCRAM-SHA-256$") || strings.HasPrefix(plain, "md5") && len(plain) == 35 {
		return "PASSWORD " + client.Quoted(plain), nil
	}
	how := strings.ToLower(value.Str(r.Encrypted))
	switch how {
	case "md5", "scram-sha-256":
	case "false":
		return "", diag.Argument.Hint(errors.New("PostgreSQL keeps no plain passwords"), "leave encrypted out")
	default:
		set, _, err := r.one(ctx, h, "", "SHOW password_encryption")
		if err != nil {
			return "", err
		}
		how = set
	}
	if how == "scram-sha-256" {
		salt := make([]byte, 16)
		_, _ = rand.Read(salt) // never returns an error
		verifier, err := scram(plain, salt, 4096)
		return "PASSWORD " + client.Quoted(verifier), err
	}
	return "PASSWORD " + client.Quoted(md5Password(r.Name, plain)), nil
}

// md5Password returns the hash of a password that older servers store.
func md5Password(role, plain string) string {
	sum := md5.Sum([]byte(plain + role))
	return "md5" + hex.EncodeToString(sum[:])
}

// scram returns the verifier of a password that servers store since PostgreSQL 10 (RFC 5803).
func scram(plain string, salt []byte, rounds int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, plain, salt, rounds, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("hashing a password: %w", err)
	}
	sign := func(text string) []byte {
		m := hmac.New(sha256.New, salted)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, b64(salt), b64(stored[:]), b64(sign("Server Key"))), nil
}

// scramAgain returns the verifier of a password, with the salt and rounds of a stored one.
func scramAgain(kept, plain string) (string, error) {
	rest, ok := strings.CutPrefix(kept, "SCRAM-SHA-256$")
	head, _, okHead := strings.Cut(rest, "$")
	rounds, salt, okSalt := strings.Cut(head, ":")
	n, err := strconv.Atoi(rounds)
	if !ok || !okHead || !okSalt || err != nil || n < 1 || n > 10_000_000 {
		return "", errors.New("the server keeps no password, or keeps it in an unknown way")
	}
	raw, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		return "", err
	}
	return scram(plain, raw, n)
}
