package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/pce-engine/pce/configs"
)

const deployDir = "../../deploy"

// The parts of manifests that deploy/ uses; a key that is not here is refused.
type (
	manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			Name      string
			Namespace string
			Labels    map[string]string
		}
		Spec *manifestSpec
		// Of a Kustomization.
		Namespace          string
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
		Labels []struct{ Pairs map[string]string }
		Images []struct {
			Name   string
			NewTag string `yaml:"newTag"`
		}
	}
	manifestSpec struct {
		// Service
		ClusterIP                string `yaml:"clusterIP"`
		PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
		Selector                 yaml.Node
		Ports                    []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		// StatefulSet
		ServiceName          string `yaml:"serviceName"`
		Replicas             int
		VolumeClaimTemplates []yaml.Node `yaml:"volumeClaimTemplates"`
		// Job
		CompletionMode   string `yaml:"completionMode"`
		Completions      int
		Parallelism      int
		BackoffLimit     int `yaml:"backoffLimit"`
		PodFailurePolicy struct {
			Rules []struct {
				Action          string
				OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
				OnExitCodes     *struct {
					ContainerName string `yaml:"containerName"`
					Operator      string
					Values        []int
				} `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template *struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
		// NetworkPolicy
		PodSelector yaml.Node `yaml:"podSelector"`
		PolicyTypes []string  `yaml:"policyTypes"`
		Ingress     []yaml.Node
		// ServiceMonitor
		Endpoints []struct {
			Port, Path, Interval string
			Authorization        struct {
				Type        string
				Credentials struct{ Name, Key string }
			}
		}
		// ServingRuntime
		Annotations           map[string]string
		SupportedModelFormats []struct {
			Name, Version string
			AutoSelect    bool `yaml:"autoSelect"`
			Priority      int
		} `yaml:"supportedModelFormats"`
		ProtocolVersions []string `yaml:"protocolVersions"`
		MultiModel       bool     `yaml:"multiModel"`
		Containers       []container
		// InferenceService
		Predictor struct {
			Model struct {
				ModelFormat     struct{ Name, Version string } `yaml:"modelFormat"`
				ProtocolVersion string                         `yaml:"protocolVersion"`
				Runtime         string
				StorageURI      string `yaml:"storageUri"`
			}
		}
	}
	podSpec struct {
		RestartPolicy                 string    `yaml:"restartPolicy"`
		TerminationGracePeriodSeconds int       `yaml:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  bool      `yaml:"automountServiceAccountToken"`
		EnableServiceLinks            *bool     `yaml:"enableServiceLinks"` // left out: they are made
		SecurityContext               yaml.Node `yaml:"securityContext"`
		Containers                    []container
		Volumes                       []struct {
			Name      string
			Secret    yaml.Node
			EmptyDir  yaml.Node `yaml:"emptyDir"`
			ConfigMap yaml.Node `yaml:"configMap"`

			PersistentVolumeClaim struct {
				ClaimName string `yaml:"claimName"`
				ReadOnly  bool   `yaml:"readOnly"`
			} `yaml:"persistentVolumeClaim"`
		}
	}
	container struct {
		Name           string
		Image          string
		Args           []string
		Env            []variable
		Ports          []port
		StartupProbe   *probe `yaml:"startupProbe"`
		LivenessProbe  *probe `yaml:"livenessProbe"`
		ReadinessProbe *probe `yaml:"readinessProbe"`
		Lifecycle      struct {
			PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
		}
		Resources       yaml.Node `yaml:"resources"`
		SecurityContext yaml.Node `yaml:"securityContext"`
		VolumeMounts    []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	port struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
		Protocol      string
	}
	variable struct {
		Name      string
		ValueFrom yaml.Node `yaml:"valueFrom"`
	}
	probe struct {
		TCPSocket        *struct{ Port string }       `yaml:"tcpSocket"`
		HTTPGet          *struct{ Path, Port string } `yaml:"httpGet"`
		PeriodSeconds    int                          `yaml:"periodSeconds"`
		FailureThreshold int                          `yaml:"failureThreshold"`
	}
)

// manifests parses every YAML file below deploy but the job's config, by its path there.
func manifests(t *testing.T) map[string][]manifest {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(deployDir, "*", "*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("manifests %v, %v", files, err)
	}
	all := map[string][]manifest{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "job.yaml" {
			continue
		}
		name, err := filepath.Rel(deployDir, file)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true)
		for {
			var m manifest
			err := dec.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all[name] = append(all[name], m)
		}
	}
	return all
}

// checkArgs wants a command line to name a command and flags that it has.
func checkArgs(t *testing.T, where string, args []string) {
	t.Helper()
	root := (&app{stdout: io.Discard, stderr: io.Discard}).root()
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root || cmd.HasSubCommands() {
		t.Errorf("%s: pce %v is no command (%v)", where, args, err)
		return
	}
	if err := parseOnly(cmd, rest); err != nil {
		t.Errorf("%s: pce %v: %v", where, args, err)
	}
}

func parseOnly(cmd *cobra.Command, rest []string) error {
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestManifests wants flags that exist, probes at ports that are open, volumes
// that are there, the exit codes that the workers have, and no variables of services, whose names begin like those of settings.
func TestManifests(t *testing.T) {
	all := manifests(t)
	for file, list := range all {
		for _, m := range list {
			if m.Kind == "Kustomization" {
				for _, r := range m.Resources {
					if _, ok := all[filepath.Join(filepath.Dir(file), r)]; !ok {
						t.Errorf("%s: no resource %s", file, r)
					}
				}
				continue
			}
			if m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" {
				t.Errorf("%s: %+v has no name", file, m)
			}
			if m.Spec == nil {
				continue
			}
			for i := range m.Spec.Containers {
				checkContainer(t, file, &m.Spec.Containers[i], nil)
			}
			if m.Spec.Template == nil {
				continue
			}
			pod := m.Spec.Template.Spec
			if pod.TerminationGracePeriodSeconds <= int(childGrace.Seconds()) {
				t.Errorf("%s: a grace of %d s is too short", file, pod.TerminationGracePeriodSeconds)
			}
			if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
				t.Errorf("%s: a command in the pod would refuse the variables of the service pce-serve", file)
			}
			volumes := []string{}
			for _, v := range pod.Volumes {
				volumes = append(volumes, v.Name)
			}
			if m.Kind == "StatefulSet" {
				volumes = append(volumes, "data")
			}
			for i := range pod.Containers {
				checkContainer(t, file, &pod.Containers[i], volumes)
			}
			if m.Kind == "Job" {
				byAction := map[string][]int{}
				for _, r := range m.Spec.PodFailurePolicy.Rules {
					if r.OnExitCodes != nil {
						byAction[r.Action] = append(byAction[r.Action], r.OnExitCodes.Values...)
						if r.OnExitCodes.ContainerName != pod.Containers[0].Name {
							t.Errorf("%s: a rule for container %s", file, r.OnExitCodes.ContainerName)
						}
					}
				}
				if !slices.Equal(byAction["FailJob"], []int{exitUsage, exitData}) || !slices.Equal(byAction["Ignore"], []int{exitCluster, exitCheckpointed}) {
					t.Errorf("%s: rules %v", file, byAction)
				}
				if pod.RestartPolicy != "Never" || m.Spec.CompletionMode != "Indexed" {
					t.Errorf("%s: a pod failure policy wants restartPolicy Never, and an index wants Indexed", file)
				}
			}
		}
	}
	if _, _, err := configs.Load(configs.Options{Files: []string{filepath.Join(deployDir, "kubernetes", "job.yaml")}}); err != nil {
		t.Error(err)
	}
}

// healthPaths are the paths that the probes of a command's container may ask for.
var healthPaths = map[string][]string{
	"worker": {"/healthz", "/readyz"},
	"serve":  {"/v2/health/live", "/v2/health/ready"},
}

// checkContainer wants flags and variables that exist, probes at ports that are open,
// and volumes that are there.
func checkContainer(t *testing.T, file string, c *container, volumes []string) {
	t.Helper()
	line := strings.Join(c.Args, " ") + " "
	checkArgs(t, file, strings.Fields(strings.ReplaceAll(line, "$(INDEX)", "0")))
	for _, v := range regexp.MustCompile(`\$\((\w+)\)`).FindAllStringSubmatch(line, -1) {
		if !slices.ContainsFunc(c.Env, func(e variable) bool { return e.Name == v[1] }) {
			t.Errorf("%s: no variable %s", file, v[1])
		}
	}
	for _, p := range []*probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p == nil {
			continue
		}
		at := ""
		if p.TCPSocket != nil {
			at = p.TCPSocket.Port
		} else if p.HTTPGet != nil {
			at = p.HTTPGet.Port
			if !slices.Contains(healthPaths[c.Args[0]], p.HTTPGet.Path) {
				t.Errorf("%s: pce %s does not answer %s", file, c.Args[0], p.HTTPGet.Path)
			}
		}
		if !slices.ContainsFunc(c.Ports, func(x port) bool { return x.Name == at }) {
			t.Errorf("%s: a probe of port %q, which is not open", file, at)
		}
	}
	for _, p := range c.Ports {
		if !strings.Contains(line, fmt.Sprintf(":%d ", p.ContainerPort)) {
			t.Errorf("%s: no argument of container %s opens port %d", file, c.Name, p.ContainerPort)
		}
	}
	for _, v := range c.VolumeMounts {
		if !slices.Contains(volumes, v.Name) {
			t.Errorf("%s: no volume %s", file, v.Name)
		}
	}
}

// TestDeployCommands wants every command line in the README to be one.
func TestDeployCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ *(?:kubectl .* -- /)?pce (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 8 {
		t.Fatalf("found %d command lines", len(lines))
	}
	for _, l := range lines {
		checkArgs(t, "README.md", strings.Fields(l[1]))
	}
}

// TestDockerfiles wants no registry to be named.
func TestDockerfiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(deployDir, "Dockerfile.*"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if from := regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(string(text), -1); len(from) != 1 || from[0][1] != "${BASE}" {
			t.Errorf("%s: FROM %v, want ${BASE}", f, from)
		}
	}
}

// TestSlurm runs the batch script with stand-ins for srun and scontrol, and wants
// the signal handed on, the worker's own number, and the job queued again.
func TestSlurm(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine: the batch script is not run")
	}
	script, err := filepath.Abs(filepath.Join(deployDir, "slurm", "pce.sbatch"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"srun":     "#!/usr/bin/env bash\nshift\nSLURM_PROCID=3 exec \"$@\"\n",
		"scontrol": "#!/usr/bin/env bash\necho \"$@\" >" + dir + "/scontrol.args\n",
		"hostname": "#!/usr/bin/env bash\necho node3\n",
		"pce":      "#!/usr/bin/env bash\ntrap 'exit 75' USR1\nprintf '%s\\n' \"$@\" >" + dir + "/tmp && mv " + dir + "/tmp " + dir + "/pce.args\nwhile :; do read -rt 0.05 <> <(:) || :; done\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	cmd := exec.Command(bash, script)
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "SLURM_JOB_ID=7", "CLUSTER_FILE=/s/url", "SEATS=/s/seats", "STATE=/s/state"}
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	eventually(t, "the worker", func() bool { _, err := os.Stat(dir + "/pce.args"); return err == nil })
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitCheckpointed {
		t.Errorf("the script ends with %d: %s", code, &out)
	}
	args, err := os.ReadFile(dir + "/pce.args")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSpace(string(args)), "\n")
	checkArgs(t, "pce.sbatch", words)
	if i := slices.Index(words, "--seat"); i < 0 || words[i+1] != "3" || !slices.Contains(words, "@/s/url") || !slices.Contains(words, "node3") {
		t.Errorf("the worker got %q", words)
	}
	if requeued, err := os.ReadFile(dir + "/scontrol.args"); err != nil || string(requeued) != "requeue 7\n" {
		t.Errorf("scontrol got %q, %v", requeued, err)
	}
}
