package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
)

// one returns the only manifest of a kind in a file.
func one(t *testing.T, all map[string][]manifest, file, kind string) *manifest {
	t.Helper()
	for i := range all[file] {
		if all[file][i].Kind == kind {
			return &all[file][i]
		}
	}
	t.Fatalf("%s has no %s", file, kind)
	return nil
}

// flagOf returns the value of a flag in the arguments of a container.
func flagOf(c *container, name string) (value string, ok bool) {
	for _, a := range c.Args {
		if value, ok = strings.CutPrefix(a, "--"+name); ok {
			return strings.TrimPrefix(value, "="), true
		}
	}
	return "", false
}

// TestServeManifests starts the server as the manifests do, and asks it what their
// probes and Prometheus ask.
func TestServeManifests(t *testing.T) {
	all := manifests(t)
	dir, err := filepath.Abs(deployDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	mixedModel(t)
	if err := os.WriteFile("token", []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	monitor := one(t, all, "serve/monitor.yaml", "ServiceMonitor").Spec.Endpoints[0]
	deployment := one(t, all, "serve/server.yaml", "Deployment").Spec.Template.Spec
	runtime := one(t, all, "kserve/servingruntime.yaml", "ServingRuntime").Spec
	for _, tc := range []struct {
		name    string
		c       *container
		metrics string // path
		token   bool
	}{
		{"deployment", &deployment.Containers[0], monitor.Path, true},
		{"kserve", &runtime.Containers[0], runtime.Annotations["prometheus.kserve.io/path"], false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			model, _ := flagOf(tc.c, "model")
			name, file, _ := strings.Cut(model, "=")
			if name == "" || path.Base(file) != run.ModelFile {
				t.Errorf("--model=%s, want the file %s of a run", model, run.ModelFile)
			}
			args := []string{"--model", "digits=" + filepath.Join("run", run.ModelFile)}
			tokenFile, token := flagOf(tc.c, "token-file")
			_, insecure := flagOf(tc.c, "insecure")
			if token {
				args = append(args, "--token-file", path.Base(tokenFile))
			}
			addr, _ := flagOf(tc.c, "addr")
			host, _, err := net.SplitHostPort(addr)
			if err != nil || token != tc.token {
				t.Fatalf("--addr=%s: %v; a token: %t", addr, err, token)
			}
			if err := serve.CheckAddress(&net.TCPAddr{IP: net.ParseIP(host)}, token || insecure, false); err != nil {
				t.Error(err)
			}
			url, stop := serving(t, nil, args...)
			defer stop()
			get := func(path, token string) int {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if token != "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
				w, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				w.Body.Close()
				return w.StatusCode
			}
			for _, p := range []*probe{tc.c.LivenessProbe, tc.c.ReadinessProbe} {
				if status := get(p.HTTPGet.Path, ""); status != 200 {
					t.Errorf("the probe of %s gets %d", p.HTTPGet.Path, status)
				}
			}
			if status := get(tc.metrics, "s3cret"); status != 200 {
				t.Errorf("Prometheus gets %d for %s", status, tc.metrics)
			}
			if status := get(tc.metrics, ""); (status == 401) != tc.token {
				t.Errorf("without a token %s gives %d", tc.metrics, status)
			}
		})
	}

	t.Run("references", func(t *testing.T) {
		service := one(t, all, "serve/server.yaml", "Service")
		type reference struct {
			what      string
			got, want any
		}
		list := []reference{
			{"namespace of the monitor", one(t, all, "serve/monitor.yaml", "ServiceMonitor").Metadata.Namespace, one(t, all, "serve/kustomization.yaml", "Kustomization").Namespace},
			{"port of the monitor", monitor.Port, service.Spec.Ports[0].Name},
			{"port of the service", service.Spec.Ports[0].TargetPort, deployment.Containers[0].Ports[0].Name},
			{"port of KServe's metrics", runtime.Annotations["prometheus.kserve.io/port"], strconv.Itoa(runtime.Containers[0].Ports[0].ContainerPort)},
			{"runtime of the inference service", one(t, all, "kserve/inferenceservice.yaml", "InferenceService").Spec.Predictor.Model.Runtime, one(t, all, "kserve/servingruntime.yaml", "ServingRuntime").Metadata.Name},
			{"KServe's container", runtime.Containers[0].Name, "kserve-container"},
			{"scheme of the token", monitor.Authorization.Type, "Bearer"},
		}
		var selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		if err := one(t, all, "serve/monitor.yaml", "ServiceMonitor").Spec.Selector.Decode(&selector); err != nil || len(selector.MatchLabels) == 0 {
			t.Fatalf("selector %v, %v", selector, err)
		}
		for key, value := range selector.MatchLabels {
			list = append(list, reference{"label " + key, service.Metadata.Labels[key], value})
		}
		var secret struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		}
		for _, v := range deployment.Volumes {
			if v.Name == "token" {
				if err := v.Secret.Decode(&secret); err != nil {
					t.Fatal(err)
				}
			}
		}
		tokenFile, _ := flagOf(&deployment.Containers[0], "token-file")
		list = append(list,
			reference{"secret of the monitor", monitor.Authorization.Credentials.Name, secret.SecretName},
			reference{"key of the secret", monitor.Authorization.Credentials.Key, path.Base(tokenFile)})
		for _, r := range list {
			if r.got != r.want || fmt.Sprint(r.got) == "" {
				t.Errorf("%s is %q, want %q", r.what, r.got, r.want)
			}
		}
		m := one(t, all, "kserve/inferenceservice.yaml", "InferenceService").Spec.Predictor.Model
		if f := runtime.SupportedModelFormats[0]; f.Name != m.ModelFormat.Name || f.Version != m.ModelFormat.Version || !slices.Contains(runtime.ProtocolVersions, m.ProtocolVersion) {
			t.Errorf("the inference service wants %+v, the runtime has %+v and %v", m, f, runtime.ProtocolVersions)
		}
		text, _ := flagOf(&deployment.Containers[0], "drain")
		drain, err := time.ParseDuration(text)
		leaving := time.Duration(deployment.Containers[0].Lifecycle.PreStop.Sleep.Seconds)*time.Second + drain
		if grace := time.Duration(deployment.TerminationGracePeriodSeconds) * time.Second; err != nil || leaving >= grace {
			t.Errorf("leaving takes %v, the pod has %v (%v)", leaving, grace, err)
		}
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{secret.SecretName, "pce-models", "deploy/serve", "deploy/kserve/servingruntime.yaml"} {
			if !strings.Contains(string(readme), name) {
				t.Errorf("the README does not say %s", name)
			}
		}
	})
}
