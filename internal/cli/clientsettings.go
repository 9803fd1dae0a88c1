package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// The settings of commands that ask a server are found in this order: flag,
// environment, file. These are their names as flags, which are their keys in the file
// as well.
const (
	flagServer    = "server"
	flagNamespace = "namespace"
	flagVia       = "via"
	flagUser      = "user"
	flagPassword  = "password-file"
	flagCA        = "ca-file"
	flagCert      = "cert-file"
	flagKey       = "key-file"
	flagName      = "server-name"

	// flagFile names the file itself, and has no key in it.
	flagFile = "client-config"
)

// settingVariables are their environment variables.
var settingVariables = map[string]string{
	flagServer:    "ROLLCALL_SERVER",
	flagNamespace: "ROLLCALL_NAMESPACE",
	flagVia:       "ROLLCALL_VIA",
	flagUser:      "ROLLCALL_USER",
	flagPassword:  "ROLLCALL_PASSWORD_FILE",
	flagCA:        "ROLLCALL_CA_FILE",
	flagCert:      "ROLLCALL_CERT_FILE",
	flagKey:       "ROLLCALL_KEY_FILE",
	flagName:      "ROLLCALL_SERVER_NAME",
	flagFile:      "ROLLCALL_CLIENT_CONFIG",
}

// clientVariables are the variables that commands read which ask a server.
func clientVariables() []string {
	var names []string
	for _, name := range settingVariables {
		names = append(names, name)
	}
	return names
}

// addSettingFlags adds the flags of the settings.
func addSettingFlags(flags *pflag.FlagSet) {
	flags.StringSliceP(flagServer, "s", nil, describeSetting(flagServer, "The server to ask, as `host:port` or URL. Of several, given with commas\nbetween or by the flag again, the first that answers.")+", default "+defaultServer)
	flags.String(flagNamespace, "", describeSetting(flagNamespace, "The namespace to ask about.")+", default public")
	addAccessFlags(flags)
	flags.String(flagFile, "", describeSetting(flagFile, "YAML `file` with these settings.")+", default rollcall/client.yaml in the user's configuration folder")
}

// describeSetting is the usage of a flag that has an environment variable.
func describeSetting(flag, usage string) string { return usage + "\nenv " + settingVariables[flag] }

// addAccessFlags adds the flags that say who asks, and whom to trust.
func addAccessFlags(flags *pflag.FlagSet) {
	flags.String(flagUser, "", describeSetting(flagUser, "The `name` to log in with."))
	flags.String(flagPassword, "", describeSetting(flagPassword, "The `file` with the password."))
	flags.String(flagCA, "", describeSetting(flagCA, "PEM `file` of the authorities to trust for https, in place of the system's."))
	flags.String(flagCert, "", describeSetting(flagCert, "PEM `file` of a certificate to show to a server that asks for one."))
	flags.String(flagKey, "", describeSetting(flagKey, "PEM `file` of its private key."))
	flags.String(flagName, "", describeSetting(flagName, "The `name` in the server's certificate, when it is asked under another."))
}

// clientSettings are the settings of one command.
type clientSettings struct {
	flags *pflag.FlagSet
	env   func(name string) string
	file  map[string]settingValue
}

// settingValue is a value in the file. A list is written as one, or with commas between.
type settingValue string

func (v *settingValue) UnmarshalYAML(node *yaml.Node) error {
	var list []string
	if node.Decode(&list) == nil {
		*v = settingValue(strings.Join(list, ","))
		return nil
	}
	return node.Decode((*string)(v))
}

// clientSettingsOf reads the file, if there is one.
func (a *app) clientSettingsOf(flags *pflag.FlagSet) (*clientSettings, error) {
	s := &clientSettings{flags: flags, env: a.lookupEnv}
	path := s.get(flagFile)
	if path == "" {
		if path = a.settingsFile(); path == "" {
			return s, nil
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flagFile, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&s.file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s: %w", flagFile, path, err)
	}
	for key := range s.file {
		if settingVariables[key] == "" || key == flagFile {
			return nil, fmt.Errorf("%s: %s: there is no setting %s", flagFile, path, key)
		}
	}
	return s, nil
}

// settingsFile is where the file is if nobody says otherwise.
func (a *app) settingsFile() string {
	if dir := a.lookupEnv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "rollcall", "client.yaml")
	}
	if home := a.lookupEnv("HOME"); home != "" {
		return filepath.Join(home, ".config", "rollcall", "client.yaml")
	}
	return ""
}

// get returns a setting; if nobody set it, the default of its flag, which may be empty.
func (s *clientSettings) get(name string) string {
	var given, unset string
	if f := s.flags.Lookup(name); f != nil {
		if unset = f.DefValue; unset == "[]" {
			unset = "" // of a list
		}
		if f.Changed {
			given = f.Value.String()
			if list, ok := f.Value.(pflag.SliceValue); ok {
				given = strings.Join(list.GetSlice(), ",")
			}
		}
	}
	return cmp.Or(given, s.env(settingVariables[name]), string(s.file[name]), unset)
}
