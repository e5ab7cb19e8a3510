{{- /* What each pod with the operator's program has: the operator itself, and the pod of `helm test`. */ -}}
{{- define "staking.operatorEnv" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- if .Values.remoteSigners }}
# Of the operator, and of `doctor` in its pod.
- name: STAKING_REMOTE_SIGNERS
  value: /etc/staking-remote-signers/remote-signers.yaml
{{- end }}
{{- if .Values.stakingApi.caSecret.name }}
- name: NODE_EXTRA_CA_CERTS
  value: /var/run/staking/ca/ca.crt
{{- end }}
{{- with .Values.extraEnv }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "staking.operatorMounts" -}}
- name: networks
  mountPath: /etc/staking-operator
  readOnly: true
- name: api-key
  mountPath: /var/run/staking/api
  readOnly: true
- name: keys
  mountPath: /var/run/staking/keys
  readOnly: true
{{- if .Values.remoteSigners }}
- name: remote-signers
  mountPath: /etc/staking-remote-signers
  readOnly: true
{{- end }}
{{- range $index, $secret := .Values.remoteSignerSecrets }}
- name: remote-signer-{{ $index }}
  mountPath: /var/run/staking/remote/{{ $secret }}
  readOnly: true
{{- end }}
{{- if include "staking.vaultLogin" . }}
- name: vault-token
  mountPath: /var/run/secrets/staking.dev/vault
  readOnly: true
{{- end }}
{{- if .Values.stakingApi.caSecret.name }}
- name: api-ca
  mountPath: /var/run/staking/ca
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "staking.operatorVolumes" -}}
{{- $fullname := include "staking.fullname" . -}}
- name: networks
  {{- if .Values.networksSecret.name }}
  secret:
    secretName: {{ .Values.networksSecret.name | quote }}
    defaultMode: 0440
  {{- else }}
  configMap:
    name: {{ $fullname }}-networks
  {{- end }}
- name: api-key
  secret:
    secretName: {{ .Values.stakingApi.apiKeySecret.name | quote }}
    defaultMode: 0440
    items:
      - key: {{ .Values.stakingApi.apiKeySecret.key | quote }}
        path: key
# The keys of all signers. A Secret that isn't there yet holds up its signers alone, and is seen when it comes.
- name: keys
  {{- if or .Values.signers .Values.signerSecrets }}
  projected:
    defaultMode: 0440
    sources:
      {{- range .Values.signerSecrets }}
      - secret:
          name: {{ . | quote }}
          optional: true
      {{- end }}
      {{- range $signer := .Values.signers }}
      - secret:
          name: {{ $signer.secretName | quote }}
          optional: true
          items:
            {{- range ($signer.files | default (list "privateKey")) }}
            - key: {{ . | quote }}
              path: {{ $signer.keyName }}/{{ . }}
            {{- end }}
      {{- end }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- if .Values.remoteSigners }}
- name: remote-signers
  configMap:
    name: {{ $fullname }}-remote-signers
{{- end }}
{{- range $index, $secret := .Values.remoteSignerSecrets }}
# A volume each: Kubernetes swaps certificate and key together.
- name: remote-signer-{{ $index }}
  secret:
    secretName: {{ $secret | quote }}
    defaultMode: 0440
    optional: true
{{- end }}
{{- if include "staking.vaultLogin" . }}
- name: vault-token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken:
          path: token
          audience: {{ .Values.vaultToken.audience | quote }}
          expirationSeconds: {{ int .Values.vaultToken.expirationSeconds }}
{{- end }}
{{- if .Values.stakingApi.caSecret.name }}
- name: api-ca
  secret:
    secretName: {{ .Values.stakingApi.caSecret.name | quote }}
    items:
      - key: {{ .Values.stakingApi.caSecret.key | quote }}
        path: ca.crt
{{- end }}
{{- with .Values.extraVolumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "staking.networksFile" -}}
/etc/staking-operator/{{ if .Values.networksSecret.name }}{{ .Values.networksSecret.key }}{{ else }}networks.yaml{{ end }}
{{- end -}}
