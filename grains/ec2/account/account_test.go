package account

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// server responds like STS, a container's server and an instance's metadata service. The keys that it returns contain
// the request, and the key with which it was signed.
func server(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, by, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		by, _, _ = strings.Cut(by, "/")
		action := r.FormValue("Action")
		key := strings.Join([]string{action, r.FormValue("RoleArn"), r.FormValue("RoleSessionName"),
			r.FormValue("ExternalId"), r.FormValue("DurationSeconds"), r.FormValue("WebIdentityToken"), "by " + by}, ";")
		fmt.Fprintf(w,
			`<%[1]sResponse><%[1]sResult><AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><AssumedRoleId>i</AssumedRoleId></AssumedRoleUser>
			<Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, key)
	})
	mux.HandleFunc("/container", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"AccessKeyId":"container %s","SecretAccessKey":"s","Token":"t","Expiration":"2099-01-01T00:00:00Z"}`,
			r.Header.Get("Authorization"))
	})
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "100")
		fmt.Fprint(w, "token")
	})
	mux.HandleFunc("/latest/meta-data/iam/security-credentials/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "role")
	})
	mux.HandleFunc("/latest/meta-data/iam/security-credentials/role", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			`{"Code":"Success","AccessKeyId":"instance","SecretAccessKey":"s","Token":"t","Expiration":"2099-01-01T00:00:00Z"}`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

const files = `
[default]
region = eu-west-1
max_attempts = 7
retry_mode = adaptive
[profile keys]
aws_access_key_id = keysofconfig
aws_secret_access_key = s
region = eu-west-2
endpoint_url = https://all.example
response_checksum_validation = when_required
services = mine
[services mine]
s3 =
  endpoint_url = https://s3.example
[profile role]
role_arn = arn:aws:iam::1:role/r
source_profile = keys
role_session_name = session
external_id = ext
duration_seconds = 7200
[profile twice]
role_arn = arn:aws:iam::1:role/outer
role_session_name = outer
source_profile = role
[profile instance]
role_arn = arn:aws:iam::1:role/r
role_session_name = session
credential_source = Ec2InstanceMetadata
[profile environment]
role_arn = arn:aws:iam::1:role/r
role_session_name = session
credential_source = Environment
[profile container]
role_arn = arn:aws:iam::1:role/r
role_session_name = session
credential_source = EcsContainer
[profile web]
role_arn = arn:aws:iam::1:role/r
role_session_name = session
web_identity_token_file = DIR/token
[profile program]
credential_process = echo '{"Version":1,"AccessKeyId":"program","SecretAccessKey":"s"}'
[profile nothing]
region = eu-west-3
[profile code]
role_arn = arn:aws:iam::1:role/r
source_profile = keys
mfa_serial = arn:aws:iam::1:mfa/me
[profile broken]
role_arn = arn:aws:iam::1:role/r
source_profile = absent
[profile sso]
sso_account_id = 1
sso_role_name = r
sso_region = eu-west-1
sso_start_url = https://start.example
[profile session]
sso_session = mine
sso_account_id = 1
sso_role_name = r
[sso-session mine]
sso_region = eu-west-1
sso_start_url = https://start.example
[profile login]
login_session = arn:aws:iam::1:user/me
`

// odd has sections that the SDK reads in special ways.
const odd = `
outside = 1
[profile switches] ; a comment
aws_access_key_id = keysofswitches
aws_secret_access_key = s # a comment
use_fips_endpoint = TRUE
use_dualstack_endpoint = true
s3_use_arn_region = true
s3_disable_multiregion_access_points = true
s3_disable_express_session_auth = true
ignore_configured_endpoint_urls = true
ec2_metadata_v1_disabled = true
ec2_metadata_service_endpoint_mode = ipv6
disable_clock_skew_correction = true
endpoint_url = https://all.example
sdk_ua_app_id = application
defaults_mode = legacy
max_attempts = 9
services = mine
[profile words]
aws_access_key_id = keysofwords
aws_secret_access_key = s
use_fips_endpoint = yes
use_dualstack_endpoint = 1
[profile itself]
role_arn = arn:aws:iam::1:role/r
role_session_name = session
region = eu-west-2
source_profile = itself
aws_access_key_id = keysofitself
aws_secret_access_key = s
[profile both]
role_arn = arn:aws:iam::1:role/r
role_session_name = session
region = eu-west-2
source_profile = keys
aws_access_key_id = keysofboth
aws_secret_access_key = s
[profile partly]
aws_access_key_id = keysofpartly
[profile circle]
role_arn = arn:aws:iam::1:role/r
source_profile = round
[profile round]
role_arn = arn:aws:iam::1:role/r
source_profile = circle
[profile empty]
role_arn = arn:aws:iam::1:role/r
source_profile = nothing
[profile two]
role_arn = arn:aws:iam::1:role/r
source_profile = keys
credential_source = Environment
[profile roleless]
source_profile = keys
[profile half]
aws_access_key_id = keysofhalf
[profile other]
aws_access_key_id = keysofconfig
aws_secret_access_key = s
region = eu-west-2
max_attempts = 2
[profile otherhalf]
aws_access_key_id = keysofconfig
aws_secret_access_key = s
[profile mended]
aws_access_key_id = keysofconfig
[ profile 	 many words ]
aws_access_key_id = keysofmanywords
aws_secret_access_key = s
[bare]
aws_access_key_id = keysofbare
aws_secret_access_key = s
[profile wrong]
max_attempts = many
[profile colon]
AWS_Access_Key_ID: keysofcolon
aws_secret_access_key = a:b=c#d;e
[profile quoted]
aws_access_key_id = "keysofquoted"
aws_secret_access_key = 's'
[profile again]
aws_access_key_id = keysofoldagain
nonsense
aws_secret_access_key = s
region = eu-west-2
[profile nothing]
[profile again]
aws_access_key_id = keysofagain
[profile indented]
  aws_access_key_id = keysofindented # a comment
  aws_secret_access_key = s
s3 =
  region = eu-west-9
  max_attempts = 3
region = eu-west-2
  continued
`

const credentialsFile = `[shared]
aws_access_key_id = keysofcredentials
aws_secret_access_key = s
[profile shared]
aws_access_key_id = ignored
aws_secret_access_key = s
[other]
aws_access_key_id = keysofother
aws_secret_access_key = s
aws_session_token = token
region = eu-west-4
[otherhalf]
aws_access_key_id = keysofotherhalf
[partly]
region = eu-west-2
[mended]
aws_access_key_id = keysofmended
aws_secret_access_key = s
`

// places sets the environment for the test, with the files above and the server for all requests.
func places(t *testing.T, environment string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	dir, url := t.TempDir(), server(t)
	for name, text := range map[string]string{"config": strings.ReplaceAll(files+odd, "DIR", dir),
		"credentials": credentialsFile, "token": "jwt",
		"default": "[default]\r\nregion = eu-west-1\r\nmax_attempts = 7\r\n[profile default]\r\nregion = eu-west-6\r\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_ENDPOINT_URL_STS", url)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
	for v := range strings.FieldsSeq(environment) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, strings.NewReplacer("DIR", dir, "URL", url).Replace(value))
	}
}

// seen returns the configuration of a client as a text.
func seen(t *testing.T, cfg aws.Config, err error) string {
	t.Helper()
	if err != nil {
		return "no configuration"
	}
	got, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		return "no credentials"
	}
	return fmt.Sprintf("%s by %v in %s at %q, %s %d, checksums %d %d, %s, own client %t, application %q, %s",
		got.AccessKeyID, got.SessionToken, cfg.Region, aws.ToString(cfg.BaseEndpoint),
		cfg.RetryMode, cfg.RetryMaxAttempts, cfg.RequestChecksumCalculation, cfg.ResponseChecksumValidation, cfg.DefaultsMode,
		cfg.HTTPClient != nil, cfg.AppID, clients(cfg))
}

// clients returns the settings of the SDK's clients for a configuration.
func clients(cfg aws.Config) string {
	m := imds.Options{}
	imds.NewFromConfig(cfg, func(o *imds.Options) { m = *o })
	b, roles := s3.NewFromConfig(cfg).Options(), sts.NewFromConfig(cfg).Options()
	return fmt.Sprintf(
		"S3 at %q %v %v, ARN %t, regions %t, express %t; STS at %q %v; metadata %v at %q %v, version 1 %v; clock %t",
		aws.ToString(b.BaseEndpoint), b.EndpointOptions.UseFIPSEndpoint, b.EndpointOptions.UseDualStackEndpoint,
		b.UseARNRegion, !b.DisableMultiRegionAccessPoints,
		!aws.ToBool(b.DisableS3ExpressSessionAuth), aws.ToString(roles.BaseEndpoint), roles.EndpointOptions.UseFIPSEndpoint,
		m.ClientEnableState, m.Endpoint, m.EndpointMode, m.EnableFallback, !cfg.DisableClockSkewCorrection)
}

// TestAsTheSDKFindsIt compares with the SDK's own LoadDefaultConfig.
func TestAsTheSDKFindsIt(t *testing.T) {
	for _, c := range []struct{ region, profile, environment, key string }{
		{"", "", "", "instance"},
		{"", "", "AWS_ACCESS_KEY_ID=env AWS_SECRET_ACCESS_KEY=s AWS_SESSION_TOKEN=t AWS_REGION=us-east-2", "env"},
		{"ap-south-1", "",
			"AWS_ACCESS_KEY_ID=env AWS_SECRET_ACCESS_KEY=s AWS_REGION=us-east-2 AWS_ENDPOINT_URL=https://e.example", "env"},
		{"", "", "AWS_ACCESS_KEY_ID=env AWS_SECRET_ACCESS_KEY=s AWS_ENDPOINT_URL=https://e.example " +
			"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true", "env"},
		{"", "", "AWS_ACCESS_KEY_ID=env AWS_SECRET_ACCESS_KEY=s AWS_PROFILE=keys", "env"},
		{"", "keys", "AWS_ACCESS_KEY_ID=env AWS_SECRET_ACCESS_KEY=s", "keysofconfig"},
		{"", "", "AWS_PROFILE=keys AWS_REQUEST_CHECKSUM_CALCULATION=when_required AWS_MAX_ATTEMPTS=2", "keysofconfig"},
		{"", "shared", "", "keysofcredentials"},
		{"", "role", "", "AssumeRole;arn:aws:iam::1:role/r;session;ext;7200;;by keysofconfig"},
		{"", "twice", "", "AssumeRole;arn:aws:iam::1:role/outer;outer;;900;;by AssumeRole;arn:aws:iam::1:role"},
		{"", "instance", "", "AssumeRole;arn:aws:iam::1:role/r;session;;900;;by instance"},
		{"", "environment", "AWS_ACCESS_KEY_ID=env AWS_SECRET_ACCESS_KEY=s AWS_REGION=us-east-2",
			"AssumeRole;arn:aws:iam::1:role/r;session;;900;;by env"},
		{"", "container",
			"AWS_CONTAINER_CREDENTIALS_FULL_URI=URL/container AWS_CONTAINER_AUTHORIZATION_TOKEN=tok AWS_REGION=us-east-2",
			"AssumeRole;arn:aws:iam::1:role/r;session;;900;;by container tok"},
		{"", "container", "AWS_REGION=us-east-2", "no configuration"},
		{"", "nothing", "AWS_CONTAINER_CREDENTIALS_FULL_URI=URL/container AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=DIR/token",
			"container jwt"},
		{"", "nothing", "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://192.0.2.1/container", "no configuration"},
		{"", "nothing", "", "instance"},
		{"", "web", "AWS_REGION=us-east-2", "AssumeRoleWithWebIdentity;arn:aws:iam::1:role/r;session;;;jwt;by "},
		{"", "", "AWS_WEB_IDENTITY_TOKEN_FILE=DIR/token AWS_ROLE_ARN=arn:aws:iam::1:role/w AWS_ROLE_SESSION_NAME=w " +
			"AWS_REGION=us-east-2", "AssumeRoleWithWebIdentity;arn:aws:iam::1:role/w;w;;;jwt;by "},
		{"", "", "AWS_WEB_IDENTITY_TOKEN_FILE=DIR/token", "no configuration"},
		{"", "program", "", "program"},
		{"", "code", "", "no configuration"},
		{"", "broken", "", "no configuration"},
		{"", "absent", "", "no configuration"},
		{"", "", "AWS_PROFILE=absent", "no configuration"},
		{"", "", "AWS_CONFIG_FILE=DIR/absent AWS_SHARED_CREDENTIALS_FILE=DIR/absent", "instance"},
		{"", "keys", "AWS_CA_BUNDLE=DIR/absent", "no configuration"},
		{"", "keys", "AWS_CA_BUNDLE=DIR/token", "no configuration"},
		{"", "keys", "AWS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt", "keysofconfig"},
		{"", "keys", "AWS_DEFAULTS_MODE=standard", "keysofconfig"},
		{"", "keys", "AWS_MAX_ATTEMPTS=many", "no configuration"},
		{"", "keys", "AWS_USE_FIPS_ENDPOINT=true AWS_S3_USE_ARN_REGION=true AWS_ENDPOINT_URL_S3=https://s3.environment",
			"keysofconfig"},
		{"", "keys", "AWS_USE_DUALSTACK_ENDPOINT=maybe", "no configuration"},
		{"", "keys", "AWS_EC2_METADATA_DISABLED=true AWS_EC2_METADATA_V1_DISABLED=true " +
			"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv6", "keysofconfig"},
		{"", "", "AWS_EC2_METADATA_DISABLED=true", "no credentials"},
		{"", "keys", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv5", "no configuration"},
		{"", "keys", "AWS_RETRY_MODE=never", "no configuration"},
		{"", "keys", "AWS_REQUEST_CHECKSUM_CALCULATION=never", "no configuration"},
		{"", "keys", "AWS_DEFAULTS_MODE=never", "no configuration"},
		{"", "keys", "AWS_SDK_UA_APP_ID=me AWS_DISABLE_CLOCK_SKEW_CORRECTION=true AWS_S3_DISABLE_EXPRESS_SESSION_AUTH=true",
			"keysofconfig"},
		{"", "", "AWS_DEFAULT_PROFILE=keys AWS_DEFAULT_REGION=us-east-2", "keysofconfig"},
		{"", "", "AWS_ACCESS_KEY=env AWS_SECRET_KEY=s AWS_PROFILE=switches", "env"},
		{"", "switches", "", "keysofswitches"},
		{"", "switches", "AWS_USE_FIPS_ENDPOINT=false AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=false", "keysofswitches"},
		{"", "words", "", "keysofwords"},
		{"", "itself", "", "AssumeRole;arn:aws:iam::1:role/r;session;;900;;by keysofitself"},
		{"", "both", "", "AssumeRole;arn:aws:iam::1:role/r;session;;900;;by keysofconfig"},
		{"", "partly", "", "instance"},
		{"", "circle", "", "no configuration"},
		{"", "empty", "", "no configuration"},
		{"", "two", "", "no configuration"},
		{"", "roleless", "", "no configuration"},
		{"", "half", "", "no configuration"},
		{"", "other", "", "keysofother"},
		{"", "otherhalf", "", "no configuration"},
		{"", "mended", "", "keysofmended"},
		{"", "many words", "", "keysofmanywords"},
		{"", "bare", "", "no configuration"},
		{"", "wrong", "", "no configuration"},
		{"", "colon", "", "keysofcolon"},
		{"", "quoted", "", "keysofquoted"},
		{"", "again", "", "keysofagain"},
		{"", "indented", "", "keysofindented"},
		{"", "", "AWS_CONFIG_FILE=DIR/default AWS_REGION=", "instance"},
		{"", "", "AWS_CONFIG_FILE=DIR", "no configuration"},
	} {
		t.Run(c.region+" "+c.profile+" "+c.environment, func(t *testing.T) {
			if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err != nil &&
				strings.Contains(c.environment, "/etc/ssl") {
				t.Skip("this machine has no bundle of authorities")
			}
			places(t, c.environment)
			ours, err := Load(t.Context(), Options{Region: c.region, Profile: c.profile})
			options := []func(*config.LoadOptions) error{config.WithRegion(c.region)}
			if c.profile != "" {
				options = append(options, config.WithSharedConfigProfile(c.profile))
			}
			theirs, theirErr := config.LoadDefaultConfig(t.Context(), options...)
			got, want := seen(t, ours, err), seen(t, theirs, theirErr)
			if got != want || !strings.HasPrefix(got, c.key) {
				t.Errorf("%s (%v)\nthe SDK: %s (%v)\nwant %s", got, err, want, theirErr, c.key)
			}
		})
	}
}

func TestInteractiveLoginIsRefused(t *testing.T) {
	places(t, "")
	for profile, way := range map[string]string{"sso": "IAM Identity Center", "session": "IAM Identity Center",
		"login": "aws login"} {
		_, err := Load(t.Context(), Options{Profile: profile})
		if err == nil || !strings.Contains(err.Error(), "profile "+profile+" signs in with") ||
			!strings.Contains(err.Error(), way) || !strings.Contains(diag.HintOf(err), "give the host a role") {
			t.Errorf("%s: %v, hint %q", profile, err, diag.HintOf(err))
		}
	}
}

func TestMissingProfileErrorNamesProfile(t *testing.T) {
	places(t, "")
	if _, err := Load(t.Context(), Options{Profile: "absent"}); err == nil ||
		!strings.Contains(err.Error(), "profile absent") || !strings.Contains(diag.HintOf(err), "list-profiles") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
}

// TestRootUsesNoConfigurationOfAnotherUser has a file that names a program for the credentials, and another user can
// change one of them.
func TestRootUsesNoConfigurationOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	for name, change := range map[string]func(file, program string) error{
		"nothing":              func(string, string) error { return nil },
		"owner":                func(file, _ string) error { return os.Chown(file, 65534, 65534) },
		"mode":                 func(file, _ string) error { return os.Chmod(file, 0o666) },
		"directory":            func(file, _ string) error { return os.Chown(filepath.Dir(file), 65534, 65534) },
		"program":              func(_, program string) error { return os.Chown(program, 65534, 65534) },
		"directory of program": func(_, program string) error { return os.Chown(filepath.Dir(program), 65534, 65534) },
	} {
		places(t, "")
		top := t.TempDir()
		file, program := filepath.Join(top, ".aws/config"), filepath.Join(top, "bin/keys")
		for path, text := range map[string]string{
			file:    "[default]\ncredential_process = sh '" + program + "'\n",
			program: "echo '{\"Version\": 1, \"AccessKeyId\": \"k\", \"SecretAccessKey\": \"s\"}'\ntouch " + top + "/ran\n",
		} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := change(file, program); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOME", top)
		t.Setenv("AWS_CONFIG_FILE", "")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "")
		cfg, err := Load(t.Context(), Options{Region: "x"})
		if err == nil {
			_, err = cfg.Credentials.Retrieve(t.Context())
		}
		if name == "nothing" && err != nil || name != "nothing" &&
			(err == nil || !strings.Contains(err.Error()+diag.HintOf(err), "C072")) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(top, "ran")); (err == nil) != (name == "nothing") {
			t.Errorf("%s: the program ran: %t", name, err == nil)
		}
	}
}
