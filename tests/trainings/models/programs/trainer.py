"""A tiny BERT judges pairs under transformers' Trainer: batches added up, bfloat16, smoothed labels, evaluations.

The bug: a late batch has a pair without a word, and the mean over its words is taken.
"""
import torch
from loop import arguments, show
from torch import nn
from transformers import BertConfig, BertModel, PrinterCallback, Trainer, TrainingArguments

args = arguments(15)


class Pairs(torch.utils.data.Dataset):
    """Words, of which the first two are alike or not."""

    def __init__(self, count, empty=-1):
        tokens = torch.randint(2, 24, (count, 8))
        self.labels = torch.randint(0, 2, (count,))
        tokens[:, 1] = torch.where(self.labels == 1, tokens[:, 0], tokens[:, 1])
        self.there = (torch.arange(8) < torch.randint(2, 9, (count, 1))).long()
        if empty >= 0:
            self.there[empty] = 0
        self.tokens = tokens * self.there

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "attention_mask": self.there[index], "labels": self.labels[index]}


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel(BertConfig(vocab_size=24, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                         intermediate_size=32, max_position_embeddings=8), add_pooling_layer=False)
        self.head = nn.Linear(16, 2)

    def forward(self, input_ids, attention_mask, labels):
        hidden = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        pooled = (hidden * attention_mask[..., None]).sum(1) / attention_mask.sum(1, keepdim=True)  # BUG
        logits = self.head(pooled).float()
        return {"loss": nn.functional.cross_entropy(logits, labels, label_smoothing=0.1), "logits": logits}


BATCH, TOGETHER = 4, 2
model = Judge()
settings = TrainingArguments(
    "out", max_steps=args.steps, per_device_train_batch_size=BATCH, gradient_accumulation_steps=TOGETHER,
    per_device_eval_batch_size=16, learning_rate=2e-3, warmup_steps=20, lr_scheduler_type="cosine", max_grad_norm=1.0,
    bf16=True, use_cpu=True, eval_strategy="steps", eval_steps=80, save_strategy="no", report_to=[], disable_tqdm=True,
    logging_strategy="no", seed=15, train_sampling_strategy="sequential")
data = Pairs(args.steps * BATCH * TOGETHER, empty=args.bug_step * BATCH * TOGETHER if args.bug_step >= 0 else -1)
trainer = Trainer(model, settings, train_dataset=data, eval_dataset=Pairs(32))
trainer.remove_callback(PrinterCallback)  # it prints how long all took
trainer.train()
show(trainer.evaluate()["eval_loss"], model)
