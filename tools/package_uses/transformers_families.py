"""Two steps of small models of forty families: of words, pictures, sounds, series and several together"""

import same
import torch
import transformers as t

ids = torch.tensor([[i * 7 % 50 + 2 for i in range(j, j + 12)] for j in range(2)])
pictures, pair = same.data(2, 3, 32, 32), torch.tensor([0, 1])
small = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
decoder = small | {"num_key_value_heads": 1, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
narrow = decoder | {"head_dim": 8, "sliding_window": 4}
both = {
    "vocab_size": 64, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "pad_token_id": 0, "decoder_start_token_id": 0}  # fmt: skip
t5 = {
    "vocab_size": 64,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "decoder_start_token_id": 0,
}
square = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
sound = {
    "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "layerdrop": 0.0, "apply_spec_augment": False, "classifier_proj_size": 8}  # fmt: skip
experts = {"num_experts_per_tok": 2}
latent = {
    "q_lora_rank": 8,
    "kv_lora_rank": 8,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 4,
    "v_head_dim": 8,
    "num_key_value_heads": 2,
}
words = {"input_ids": ids, "labels": ids}
classes = {"input_ids": ids, "labels": pair}
seen = {"pixel_values": pictures, "labels": pair}
relative = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
shown = {"input_ids": ids, "pixel_values": pictures, "return_loss": True}
GIVEN = [
    ("BertForMaskedLM", "BertConfig", small, words),
    ("RobertaForMaskedLM", "RobertaConfig", small, words),
    ("ElectraForSequenceClassification", "ElectraConfig", small | {"embedding_size": 8}, classes),
    ("AlbertForMaskedLM", "AlbertConfig", small | {"embedding_size": 8}, words),
    ("DebertaForMaskedLM", "DebertaConfig", small | relative, words),
    ("DebertaV2ForSequenceClassification", "DebertaV2Config", small | relative | {"conv_kernel_size": 3, "conv_act": "gelu"}, classes),
    ("ModernBertForMaskedLM", "ModernBertConfig", small | {"pad_token_id": 0, "local_attention": 4, "global_attn_every_n_layers": 2}, words),
    ("LongformerForMaskedLM", "LongformerConfig", small | {"attention_window": 4, "pad_token_id": 0}, words),
    ("EsmForMaskedLM", "EsmConfig", small | {"pad_token_id": 1, "mask_token_id": 3, "position_embedding_type": "rotary"}, words),
    ("XLNetForSequenceClassification", "XLNetConfig", {"vocab_size": 64, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}, classes),
    ("LlamaForCausalLM", "LlamaConfig", decoder, words),
    ("MistralForCausalLM", "MistralConfig", decoder | {"sliding_window": 6}, words),
    ("MixtralForCausalLM", "MixtralConfig", decoder | experts | {"num_local_experts": 4, "output_router_logits": True}, words),
    ("Qwen3ForCausalLM", "Qwen3Config", decoder | {"head_dim": 8}, words),
    ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", decoder | experts | {"head_dim": 8, "num_experts": 4, "moe_intermediate_size": 8}, words),
    ("Gemma2ForCausalLM", "Gemma2Config", narrow, words),
    ("Gemma3ForCausalLM", "Gemma3TextConfig", narrow, words),
    ("GptOssForCausalLM", "GptOssConfig", narrow | experts | {"num_local_experts": 4}, words),
    ("DeepseekV3ForCausalLM", "DeepseekV3Config", decoder | experts | latent | {
        "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 8, "first_k_dense_replace": 1}, words),
    ("PhiForCausalLM", "PhiConfig", decoder, words),
    ("Olmo2ForCausalLM", "Olmo2Config", decoder, words),
    ("CohereForCausalLM", "CohereConfig", decoder, words),
    ("FalconForCausalLM", "FalconConfig", {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "alibi": True}, words),
    ("BloomForCausalLM", "BloomConfig", {"vocab_size": 64, "hidden_size": 16, "n_layer": 2, "n_head": 2}, words),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", small, words),
    ("GPTJForCausalLM", "GPTJConfig", {"vocab_size": 64, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2, "rotary_dim": 4}, words),
    ("MambaForCausalLM", "MambaConfig", {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}, words),
    ("Lfm2ForCausalLM", "Lfm2Config", decoder | {"layer_types": ["conv", "full_attention"]}, words),
    ("RwkvForCausalLM", "RwkvConfig", {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "context_length": 32}, words),
    ("T5ForConditionalGeneration", "T5Config", t5, words),
    ("BartForConditionalGeneration", "BartConfig", both, words),
    ("PegasusForConditionalGeneration", "PegasusConfig", both, words),
    ("WhisperForConditionalGeneration", "WhisperConfig", both | {
        "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 32, "bos_token_id": 1, "eos_token_id": 2},
        {"input_features": same.data(2, 8, 40), "labels": ids}),
    ("HubertForSequenceClassification", "HubertConfig", {k: v for k, v in small.items() if k != "max_position_embeddings"} | sound,
        {"input_values": same.data(2, 800), "labels": pair}),
    ("ViTForImageClassification", "ViTConfig", square, seen),
    ("BeitForImageClassification", "BeitConfig", square | {"use_relative_position_bias": True, "drop_path_rate": 0.0, "out_indices": [0]}, seen),
    ("SwinForImageClassification", "SwinConfig", {
        "image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4, "drop_path_rate": 0.0}, seen),
    ("ConvNextV2ForImageClassification", "ConvNextV2Config", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, seen),
    ("CLIPModel", "CLIPConfig", {"text_config": small | {"bos_token_id": 1, "eos_token_id": 2}, "vision_config": square, "projection_dim": 8}, shown),
    ("PatchTSTForPrediction", "PatchTSTConfig", {
        "num_input_channels": 2, "context_length": 16, "prediction_length": 4, "patch_length": 4, "patch_stride": 4, "d_model": 16,
        "num_attention_heads": 2, "ffn_dim": 32, "num_hidden_layers": 2}, {"past_values": same.data(2, 16, 2), "future_values": same.data(2, 4, 2)}),
]  # fmt: skip
t.logging.set_verbosity_error()
numbers = []
for name, config, options, inputs in GIVEN:
    model = same.weights(getattr(t, name)(getattr(t, config)(**options))).train(
        name.startswith("Rwkv")
    )  # whose state is changed in place else
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
    slopes = [p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None]
    numbers += [len(slopes), sum(slopes)]
same.report(numbers)
