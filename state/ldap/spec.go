package ldap

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Parse returns the server of a connect_spec of Salt's ldap3: url, bind, tls and opts. The URL is the one for a
// connect_spec without any.
func Parse(spec any, url string) (Server, error) {
	s := Server{URL: url}
	m, ok := spec.(*value.Map)
	if !ok && spec != nil {
		return s, unsupported("connect_spec", value.TypeName(spec))
	}
	if given := m.Value("url"); given != nil {
		s.URL = value.Str(given)
	}
	for key := range m.All() {
		if name := value.Str(key); !strings.Contains(" url bind tls opts backend ", " "+name+" ") {
			return s, unsupported("connect_spec", name)
		}
	}
	if bind, ok := m.Value("bind").(*value.Map); ok {
		if err := s.bind(bind); err != nil {
			return s, err
		}
	}
	for _, of := range []string{"tls", "opts"} {
		options, _ := m.Value(of).(*value.Map)
		for key, v := range options.All() {
			if err := s.option(of, value.Str(key), v); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func unsupported(what, name string) error {
	return diag.Argument.Hint(fmt.Errorf("%s of an LDAP connection: %s is not supported", what, name),
		"docs/states-applications.md lists what is; settings for all programs belong into /etc/ldap/ldap.conf")
}

// bind sets the identity. EXTERNAL, of a Unix socket or a certificate, needs no credentials, and neither does GSSAPI.
func (s *Server) bind(m *value.Map) error {
	method, mechanism := "simple", "EXTERNAL"
	if v, given := m.Get("method"); given {
		method = value.Str(v)
	}
	if v := m.Value("mechanism"); v != nil {
		mechanism = strings.ToUpper(value.Str(v))
	}
	switch {
	case method == "simple":
		if v := m.Value("dn"); v != nil {
			s.DN = value.Str(v)
		}
		if v := m.Value("password"); v != nil {
			s.Password = value.Str(v)
		}
	case method == "sasl" && (mechanism == "EXTERNAL" || mechanism == "GSSAPI") && !value.Truth(m.Value("credentials")):
		s.Mechanism = mechanism
	case method != "None":
		return unsupported("bind", method+" "+mechanism+" with credentials")
	}
	return nil
}

// variables are the settings of the client library for keys of tls and opts.
const variables = " tls.cacertdir=TLS_CACERTDIR tls.cacertfile=TLS_CACERT tls.certfile=TLS_CERT tls.keyfile=TLS_KEY " +
	"tls.cipher_suite=TLS_CIPHER_SUITE tls.crlcheck=TLS_CRLCHECK tls.crlfile=TLS_CRLFILE tls.require_cert=TLS_REQCERT " +
	"tls.protocol_min=TLS_PROTOCOL_MIN opts.network_timeout=NETWORK_TIMEOUT opts.timeout=TIMEOUT "

func (s *Server) option(of, key string, v any) error {
	_, after, known := strings.Cut(variables, " "+of+"."+key+"=")
	switch {
	case key == "starttls": // its value is ignored, as in Salt
		s.StartTLS = true
	case key == "newctx":
	case !known:
		return unsupported(of, key)
	default:
		name, _, _ := strings.Cut(after, " ")
		if n, ok := v.(int); ok && key == "protocol_min" { // such as 0x303
			v = fmt.Sprintf("%d.%d", n>>8, n&0xff)
		}
		s.Env = append(s.Env, "LDAP"+name+"="+value.Str(v))
	}
	return nil
}
