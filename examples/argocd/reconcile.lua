-- Has the operator look at it now.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["staking.dev/reconcile-at"] = os.date("!%Y-%m-%dT%XZ")
return obj
