{{- define "staking.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (.Values.nameOverride | default .Chart.Name) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "staking.service.fullname" -}}
{{- printf "%s-service" (include "staking.fullname" .) -}}
{{- end -}}

{{- define "staking.selector" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default .root.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "staking.labels" -}}
{{- include "staking.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* For what an upgrade is not to touch unless it changes something: without the labels of a version. */ -}}
{{- define "staking.lastingLabels" -}}
{{- include "staking.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Each program has an image of its own: `image` is that of `values`. */ -}}
{{- define "staking.image" -}}
{{- $root := .root -}}
{{- with .values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "staking.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "staking.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- /* URL of the staking API: that of the values, or of this chart's service. */ -}}
{{- define "staking.apiUrl" -}}
{{- if .Values.stakingApi.url -}}
{{- .Values.stakingApi.url -}}
{{- else -}}
{{ include "staking.service.scheme" . }}://{{ include "staking.service.fullname" . }}.{{ .Release.Namespace }}:8080
{{- end -}}
{{- end -}}

{{- /* How the service of this chart is spoken to. */ -}}
{{- define "staking.service.scheme" -}}
{{- if or .Values.service.tls.secretName .Values.service.config.tls -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{- /* Whether the service keeps its data in a PostgreSQL of its own. */ -}}
{{- define "staking.embedded" -}}
{{- if not .Values.service.database.urlSecret.name -}}true{{- end -}}
{{- end -}}

{{- /* Whether a remote signer logs in with the service account's token. */ -}}
{{- define "staking.vaultLogin" -}}
{{- range .Values.remoteSigners -}}
{{- if .transit -}}{{- if hasKey .transit.auth "kubernetes" -}}true{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The port of an http(s) URL. */ -}}
{{- define "staking.portOf" -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" (urlParse .).host) | default (ternary "80" "443" (hasPrefix "http://" .)) -}}
{{- end -}}

{{- /* The ports of remote signers, as a list in YAML. */ -}}
{{- define "staking.remoteSignerPorts" -}}
{{- $ports := dict -}}
{{- range .Values.remoteSigners -}}
{{- $url := "https://aws" -}}
{{- if .web3signer -}}{{- $url = .web3signer.url -}}{{- else if .transit -}}{{- $url = .transit.url -}}{{- else if .awsKms -}}{{- $url = .awsKms.endpoint | default $url -}}{{- end -}}
{{- $_ := set $ports (include "staking.portOf" $url) true -}}
{{- end -}}
{{- keys $ports | sortAlpha | toYaml -}}
{{- end -}}

{{- /* Those of the chart and of one that has it as a dependency. */ -}}
{{- define "staking.pullSecrets" -}}
{{- with concat (.Values.global.imagePullSecrets | default list) .Values.imagePullSecrets | uniq -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- /* Where a pod may run: `values` has what every pod can be given. */ -}}
{{- define "staking.scheduling" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.dnsPolicy }}
dnsPolicy: {{ . | quote }}
{{- end }}
{{- with .values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range .values.topologySpreadConstraints }}
  {{- $own := dict "labelSelector" (dict "matchLabels" (include "staking.selector" $ | fromYaml)) }}
  - {{- toYaml (merge (deepCopy .) $own) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* Milliseconds of a duration such as 15s, as a text. */ -}}
{{- define "staking.ms" -}}
{{- $factors := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (index $factors (regexFind "[a-z]+$" .) | float64) -}}
{{- end -}}
